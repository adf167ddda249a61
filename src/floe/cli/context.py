"""Shared by commands: options, the current project, its catalog, and the caller."""

import getpass
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe import clock
from floe.settings import ProjectNotFoundError, ProjectPaths, find_project, make_private_folder

if TYPE_CHECKING:
    from floe.catalog import Catalog
    from floe.catalog.principals import NewToken
    from floe.spec.dates import DateRules

CATALOG_FILE, TOKEN_FILE, ADDRESS_FILE = "catalog.db", "token", "address"
DEFAULT_HOST, DEFAULT_PORT, DEFAULT_LAKE = "127.0.0.1", 8765, "lake"

ProjectOption = Annotated[
    Path | None,
    typer.Option("--project", "-p", help="Folder with floe.yaml (default: here or above)."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def parse_business_date(text: str | date) -> date:
    """Parse a business date from the command line."""
    try:
        day = text if isinstance(text, date) else datetime.strptime(text, "%Y-%m-%d").date()  # noqa: DTZ007
    except ValueError:
        raise typer.BadParameter(f"'{text}' is not a date. Write it as 2026-09-01.") from None
    if not clock.is_business_date(day):
        raise typer.BadParameter(f"{day} is out of range: business dates are {clock.DATE_RANGE}.")
    return day


def date_option(explanation: str) -> Any:
    """Return the option `--date` of a command."""
    return typer.Option(
        "--date", "-d", parser=parse_business_date, metavar="YYYY-MM-DD", help=explanation
    )


@dataclass(frozen=True)
class Home:
    """Where a catalog lives: in a project, or in a folder that has no project yet."""

    paths: ProjectPaths
    url: str
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    lake: str = DEFAULT_LAKE
    public_url: str | None = None

    @property
    def token_file(self) -> Path:
        return self.paths.state_dir / TOKEN_FILE

    @property
    def address_file(self) -> Path:
        return self.paths.state_dir / ADDRESS_FILE


def find_home(project: Path | None) -> Home:
    """Find the catalog's home. A folder without a project gets its own catalog."""
    if bare := find_bare_home(project):
        url = os.environ.get("FLOE_CATALOG_URL") or f"sqlite:///{bare.state_dir / CATALOG_FILE}"
        return Home(bare, url)
    paths = find_project(project)
    from floe.spec import load_platform

    platform = load_platform(paths, os.environ)
    return Home(
        paths,
        catalog_url(project),
        platform.api.host,
        platform.api.port,
        platform.lake.name,
        platform.api.url,
    )


def find_bare_home(project: Path | None) -> ProjectPaths | None:
    """Return the current folder if it has no project and none was asked for."""
    if project is not None or "FLOE_PROJECT" in os.environ:
        return None
    try:
        find_project(None)
    except ProjectNotFoundError:
        return ProjectPaths(Path.cwd())
    return None


def catalog_url(project: Path | None) -> str:
    """Return the catalog's URL: FLOE_CATALOG_URL, else the platform's.

    In a folder without a project it is the catalog that `floe api` created there, if any.
    """
    if url := os.environ.get("FLOE_CATALOG_URL"):
        return url
    if (bare := find_bare_home(project)) and (file := bare.state_dir / CATALOG_FILE).is_file():
        return f"sqlite:///{file}"
    from floe.catalog import catalog_url as complete
    from floe.spec import load_platform
    from floe.spec.loader import load_catalog_database

    paths = find_project(project)
    platform = load_platform(paths, os.environ)
    database = load_catalog_database(paths, platform, os.environ)
    secrets = Path(platform.secrets.folder)
    full = complete(database, root=paths.root, environ=os.environ, secrets=secrets)
    return full.render_as_string(hide_password=False)


def event_retention(project: Path | None) -> timedelta:
    """Return how long the catalog keeps events; without a project, the default."""
    from floe.spec import load_platform
    from floe.spec.loader import load_catalog_database
    from floe.spec.platform import CatalogRetention

    if find_bare_home(project):
        return CatalogRetention().events
    paths = find_project(project)
    platform = load_platform(paths, os.environ)
    return load_catalog_database(paths, platform, os.environ).retention.events


def date_rules(project: Path | None) -> "DateRules":
    """Return the rules for dates in names; without a project, the default rules."""
    from floe.spec import load_platform
    from floe.spec.dates import DEFAULT_RULES

    if find_bare_home(project):
        return DEFAULT_RULES
    return load_platform(find_project(project), os.environ).events.date_rules()


@contextmanager
def open_project_catalog(project: Path | None) -> Iterator["Catalog"]:
    """Open the project's catalog; create or upgrade its tables first if needed."""
    with open_catalog_at(catalog_url(project)) as catalog:
        yield catalog


@contextmanager
def open_catalog_at(url: str) -> Iterator["Catalog"]:
    """Open a catalog by its URL; create or upgrade its tables first if needed."""
    from floe.catalog import open_ready_catalog

    catalog = open_ready_catalog(url)
    try:
        yield catalog
    finally:
        catalog.close()


def create_admin(catalog: "Catalog", token_file: Path) -> "NewToken | None":
    """Create the first administrator; write its token to a private file."""
    from floe.catalog.principals import create_first_admin

    with catalog.writing() as session:
        first = create_first_admin(session, actor="floe api")
        if first is not None:
            # Before the commit: a token that nobody has would lock everybody out.
            write_secret(token_file, first.text)
    return first


def create_login_secret(
    catalog: "Catalog", token_file: Path, name: str | None = None
) -> str | None:
    """Return the secret of a one-time login link; None if the caller is unknown.

    The caller is the principal of the token in the project's folder. The owner of an embedded
    catalog may do everything with it, even without that token.
    """
    from floe.catalog.logins import create_link
    from floe.catalog.principals import ADMIN_NAME, find_principal, find_token, hash_token

    with catalog.writing() as session:
        if name is None and token_file.is_file():
            text = token_file.read_text(encoding="utf-8").strip()
            known = find_token(session, hash_token(text), clock.now())
            name = None if known is None else known.identity.name
        if name is None and catalog.store.name == "sqlite":
            name = find_principal(session, ADMIN_NAME)
        return None if name is None else create_link(session, name, actor=getpass.getuser())


def roles_of_caller(catalog: "Catalog", paths: ProjectPaths) -> frozenset[str]:
    """Return the caller's roles; empty without a token that may read."""
    from floe.catalog.principals import SCOPE_ALL, SCOPE_READ, find_token, hash_token

    text = _token_of_caller(paths)
    if not text:
        return frozenset()
    with catalog.reading() as session:
        known = find_token(session, hash_token(text), clock.now())
    if known is None or not known.identity.scopes & {SCOPE_ALL, SCOPE_READ}:
        return frozenset()
    return known.identity.roles


def _token_of_caller(paths: ProjectPaths) -> str:
    """Return FLOE_API_TOKEN, else the token that `floe api` stored in the project."""
    if given := os.environ.get("FLOE_API_TOKEN", "").strip():
        return given
    try:
        return (paths.state_dir / TOKEN_FILE).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def write_secret(path: Path, text: str) -> None:
    """Replace a file atomically with one that only its owner can read."""
    make_private_folder(path.parent)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"{text}\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
