"""Where a project's catalog is: the URL that its platform says, ready to be opened."""

from collections.abc import Mapping
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from floe.catalog.database import CatalogUrlError
from floe.spec.platform import CatalogDatabase


def catalog_url(
    database: CatalogDatabase, *, root: Path, environ: Mapping[str, str], secrets: Path
) -> URL:
    """Complete a catalog's URL: a relative file starts at the project, the password is fetched."""
    try:
        url = make_url(database.url)
    except ArgumentError as error:
        raise CatalogUrlError(str(error)) from error
    if url.get_backend_name() == "sqlite" and url.database:
        return url.set(database=str(root / url.database))
    if database.user is not None:
        url = url.set(username=database.user)
    if database.password is not None:
        url = url.set(password=database.password.resolve(environ, secrets))
    return url
