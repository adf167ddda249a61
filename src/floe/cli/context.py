"""What commands stand on: the project they are in, and its catalog."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from floe.settings import ProjectNotFoundError, find_project

if TYPE_CHECKING:
    from floe.catalog import Catalog


def catalog_url(project: Path | None) -> str:
    """Say where the catalog is: FLOE_CATALOG_URL, else what the project's platform says."""
    if url := os.environ.get("FLOE_CATALOG_URL"):
        return url
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

    try:
        paths = find_project(project)
    except ProjectNotFoundError:
        if project is not None or "FLOE_PROJECT" in os.environ:
            raise
        return CatalogRetention().events
    platform = load_platform(paths, os.environ)
    return load_catalog_database(paths, platform, os.environ).retention.events


@contextmanager
def open_project_catalog(project: Path | None) -> Iterator["Catalog"]:
    """Open the project's catalog, its tables in the shape that this version needs."""
    from floe.catalog import open_ready_catalog

    catalog = open_ready_catalog(catalog_url(project))
    try:
        yield catalog
    finally:
        catalog.close()
