"""Ids of runs, as people give them: whole, or by their first letters."""

from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from floe.catalog.errors import RunAmbiguousError
from floe.catalog.tables import ProcessRun

WHOLE, SHORT = 36, 8
SHOWN = 5
"""How many candidates an error names."""


def whole_run_id(session: Session, given: str) -> str:
    """Return the id of the run or batch that begins so; what nothing begins with stays."""
    bounds = _bounds(given)
    if bounds is None:
        return given
    found: set[str] = set()
    for column in (ProcessRun.run_uuid, ProcessRun.parent_run_uuid):
        begins = column.between(*bounds)
        found |= set(session.scalars(select(column).where(begins).distinct().limit(SHOWN)))
    if len(found) > 1:
        raise RunAmbiguousError(given, found)
    return next(iter(found), given)


def _bounds(given: str) -> tuple[str, str] | None:
    """Return the first and the last id that begin so: an index finds what is between them."""
    digits = given.replace("-", "")
    try:
        first, last = (UUID(digits.ljust(32, filler)) for filler in "0f")
    except ValueError:
        return None
    return (str(first), str(last)) if len(given) < WHOLE else None


def short_run_id(run_uuid: str) -> str:
    """Return what a table shows of a run's id, and `whole_run_id` takes."""
    return run_uuid[:SHORT]
