"""Everything a run needs: the site, the catalog, the event door and leases."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING

from floe.catalog import Catalog, open_ready_catalog, register_project
from floe.catalog.database import catalog_url
from floe.catalog.datasets import get_dataset_id
from floe.catalog.projects.register import is_registered
from floe.errors import FloeError
from floe.events.ingest import EventDoor
from floe.execution.leases import LeaseKeeper
from floe.execution.site import Site
from floe.settings import ProjectPaths
from floe.spec import DatasetSpec, LoadedProject, load_platform, load_project
from floe.spec.identity import DatasetId
from floe.spec.loader import load_catalog_database
from floe.spec.nearby import suggest
from floe.spec.sql import sql_of_processes

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


class NotRegisteredError(FloeError):
    """A project changed since it was registered; production does not re-register it."""

    def __init__(self, project: str) -> None:
        super().__init__(
            f"The current declaration of '{project}' is not registered. Run: floe register"
        )


class UndeclaredError(FloeError):
    """A name is not declared in floe.yaml."""

    def __init__(self, kind: str, name: str, known: list[str]) -> None:
        plural = {"process": "processes"}.get(kind, f"{kind}s")
        hint = suggest(name, known) or f"List them with: floe {plural}"
        super().__init__(f"floe.yaml declares no {kind} '{name}'. {hint}".rstrip())


@dataclass(frozen=True)
class Workspace:
    """A registered project with its catalog open, ready to run."""

    site: Site
    catalog: Catalog
    door: EventDoor
    leases: LeaseKeeper

    @property
    def lake(self) -> str:
        return self.site.platform.lake.name

    def dataset(self, name: str) -> DatasetSpec:
        """Return the declaration of a dataset in floe.yaml."""
        known = self.site.spec.datasets
        if name not in known:
            raise UndeclaredError("dataset", name, list(known))
        return known[name]

    def dataset_id(self, name: str, session: "Session | None" = None) -> int:
        """Return the catalog id of a dataset.

        Pass the open session if there is one: waiting for a second connection while holding the
        first can deadlock with others that do the same.
        """
        full_name = DatasetId(self.lake, name).full_name
        if session is not None:
            return get_dataset_id(session, full_name)
        with self.catalog.reading() as opened:
            return get_dataset_id(opened, full_name)


def load_site(
    paths: ProjectPaths,
    environ: Mapping[str, str] | None = None,
    load: Callable[[ProjectPaths, Mapping[str, str]], LoadedProject] = load_project,
) -> Site:
    """Load a project and its platform; `load` may add checks to the default."""
    environ = dict(os.environ if environ is None else environ)
    return Site(paths, load(paths, environ).spec, load_platform(paths, environ), environ)


@contextmanager
def open_workspace(site: Site) -> Iterator[Workspace]:
    """Open a site's catalog and event door, and close them at the end."""
    catalog = open_ready_catalog(catalog_address(site))
    try:
        _ensure_registered(site, catalog)
        dates = site.platform.events.date_rules()
        door, leases = EventDoor(catalog, dates=dates, own=True), LeaseKeeper(catalog)
        try:
            yield Workspace(site, catalog, door, leases)
        finally:
            leases.close()
            door.close()
    finally:
        catalog.close()


def catalog_address(site: Site) -> str:
    if url := site.environ.get("FLOE_CATALOG_URL"):
        return url
    database = load_catalog_database(site.paths, site.platform, site.environ)
    folder = Path(site.platform.secrets.folder)
    full = catalog_url(database, root=site.root, environ=site.environ, secrets=folder)
    return full.render_as_string(hide_password=False)


def _ensure_registered(site: Site, catalog: Catalog) -> None:
    with catalog.reading() as session:
        if is_registered(session, site.spec):
            return
    if site.platform.environment == "production":
        raise NotRegisteredError(site.spec.name)
    with catalog.writing() as session:
        register_project(
            session,
            site.spec,
            lake=site.platform.lake.name,
            actor=getuser(),
            sql=sql_of_processes(site.root, site.spec.processes),
        )
