"""Who calls a command: the principal whose token the surroundings hold, and its roles."""

import os
from typing import TYPE_CHECKING

from floe import clock
from floe.cli.api import TOKEN_FILE

if TYPE_CHECKING:
    from floe.catalog import Catalog
    from floe.settings import ProjectPaths


def roles_of_caller(catalog: "Catalog", paths: "ProjectPaths") -> frozenset[str]:
    """Return the roles of whoever calls; none without a token that is good for reading."""
    from floe.catalog.principals import SCOPE_ALL, SCOPE_READ, find_token, hash_token

    text = _token(paths)
    if not text:
        return frozenset()
    with catalog.reading() as session:
        known = find_token(session, hash_token(text), clock.now())
    if known is None or not known.identity.scopes & {SCOPE_ALL, SCOPE_READ}:
        return frozenset()
    return known.identity.roles


def _token(paths: "ProjectPaths") -> str:
    """FLOE_API_TOKEN goes first, then the token that `floe api` keeps in the project."""
    if given := os.environ.get("FLOE_API_TOKEN", "").strip():
        return given
    try:
        return (paths.state_dir / TOKEN_FILE).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
