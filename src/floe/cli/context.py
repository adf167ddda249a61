"""What commands stand on: the project they are in, and its catalog."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from floe.settings import ProjectNotFoundError, ProjectPaths, find_project

if TYPE_CHECKING:
    from floe.catalog import Catalog
    from floe.spec.dates import DateRules


CATALOG_FILE = "catalog.db"


def find_bare_home(project: Path | None) -> ProjectPaths | None:
    """Return this folder where there is no project, unless one was asked for."""
    if project is not None or "FLOE_PROJECT" in os.environ:
        return None
    try:
        find_project(None)
    except ProjectNotFoundError:
        return ProjectPaths(Path.cwd())
    return None


def catalog_url(project: Path | None) -> str:
    """Say where the catalog is: FLOE_CATALOG_URL, else what the project's platform says.

    In a folder without a project it is the one that `floe api` has made there, if it has.
    """
    if url := os.environ.get("FLOE_CATALOG_URL"):
        return url
    if (bare := find_bare_home(project)) and (file := bare.state_dir / CATALOG_FILE).is_file():
        return f"sqlite:///{file}"
    from floe.catalog import catalog_url as complete
    from floe.spec import load_platform
    from floe.spec.profiles import load_catalog_database

    paths = find_project(project)
    platform = load_platform(paths, os.environ)
    database = load_catalog_database(paths, platform, os.environ)
    secrets = Path(platform.secrets.folder)
    full = complete(database, root=paths.root, environ=os.environ, secrets=secrets)
    return full.render_as_string(hide_password=False)


def event_retention(project: Path | None) -> timedelta:
    """Say how long the catalog keeps events; a catalog without a project keeps the default."""
    from floe.spec import load_platform
    from floe.spec.platform import CatalogRetention
    from floe.spec.profiles import load_catalog_database

    if find_bare_home(project):
        return CatalogRetention().events
    paths = find_project(project)
    platform = load_platform(paths, os.environ)
    return load_catalog_database(paths, platform, os.environ).retention.events


def date_rules(project: Path | None) -> "DateRules":
    """Return the rules for dates in names; a catalog without a project has the default ones."""
    from floe.spec import load_platform
    from floe.spec.dates import DEFAULT_RULES

    if find_bare_home(project):
        return DEFAULT_RULES
    return load_platform(find_project(project), os.environ).events.date_rules()


@contextmanager
def open_project_catalog(project: Path | None) -> Iterator["Catalog"]:
    """Open the project's catalog, its tables in the shape that this version needs."""
    from floe.catalog import open_ready_catalog

    catalog = open_ready_catalog(catalog_url(project))
    try:
        yield catalog
    finally:
        catalog.close()
