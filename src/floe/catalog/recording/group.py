"""Record a group of claims in one transaction, and find the one that spoils it if one does."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.exc import DBAPIError

from floe.catalog.database import Catalog
from floe.catalog.recording.claims import EventClaim
from floe.catalog.recording.record import Recorder
from floe.catalog.recording.scope import StaleKnowledgeError
from floe.catalog.search.documents import index_datasets, list_unindexed
from floe.errors import FloeError

# After so many tries it is no other writer that is in the way.
TRIES, CAREFUL = 5, 2
INDEXED_AT_ONCE = 500
# PostgreSQL: serialization failure, deadlock.
PASSING = frozenset({"40001", "40P01"})


class CatalogUnavailableError(FloeError):
    """The catalog's database cannot be written just now. Nothing was kept; try again later."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The catalog cannot be written just now: {reason}")


class UnstorableClaimError(FloeError):
    """The database refuses what an event claims."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The catalog cannot store this event: {reason}")


def record_group(
    catalog: Catalog, recorder: Recorder, claims: Sequence[EventClaim], now: datetime
) -> dict[int, UnstorableClaimError]:
    """Commit a group; return what went wrong with single claims, by their place in it.

    One that the database refuses is found by halving, so its neighbours are stored all the same.
    """
    try:
        _commit(catalog, recorder, claims, now)
    except UnstorableClaimError as error:
        if len(claims) == 1:
            return {0: error}
        middle = len(claims) // 2
        left = record_group(catalog, recorder, claims[:middle], now)
        right = record_group(catalog, recorder, claims[middle:], now)
        return {**left, **{middle + place: wrong for place, wrong in right.items()}}
    return {}


def _commit(
    catalog: Catalog, recorder: Recorder, claims: Sequence[EventClaim], now: datetime
) -> None:
    driver_error = catalog.engine.dialect.loaded_dbapi.Error
    for attempt in range(TRIES):
        recorder.careful = attempt >= CAREFUL
        try:
            recorder.days.prepare(catalog, {claim.day for claim in claims}, now.date())
            connection = recorder.connection(catalog.engine)
            with connection.begin():
                recorder.record(connection, claims, now)
        except StaleKnowledgeError:
            recorder.start_anew()
        except (DBAPIError, driver_error, ValueError) as error:
            recorder.start_anew()
            cause = getattr(error, "orig", None) or error
            if not _may_pass(catalog, cause) or attempt == TRIES - 1:
                raise _explain(catalog, cause) from error
        else:
            recorder.memory.commit()
            return
    raise CatalogUnavailableError("other writers were faster each time.")


def _may_pass(catalog: Catalog, cause: BaseException) -> bool:
    """Whether another try may do: another writer was in the way, or more has to be looked at."""
    is_taken = isinstance(cause, catalog.engine.dialect.loaded_dbapi.IntegrityError)
    return is_taken or getattr(cause, "sqlstate", None) in PASSING


def _explain(catalog: Catalog, cause: BaseException) -> FloeError:
    drivers = catalog.engine.dialect.loaded_dbapi
    said = str(cause).strip().splitlines()
    reason = said[0] if said else type(cause).__name__
    if isinstance(cause, drivers.OperationalError | drivers.InterfaceError):
        return CatalogUnavailableError(reason)
    return UnstorableClaimError(reason)


def tidy_up(catalog: Catalog, recorder: Recorder) -> None:
    """Use a quiet moment for what the store has put off while events came in."""
    try:
        recorder.tidy()
    except catalog.engine.dialect.loaded_dbapi.Error as error:
        raise _explain(catalog, error) from error


def index_recorded(catalog: Catalog, recorder: Recorder) -> None:
    """Make what was recorded findable, in transactions of its own."""
    waiting = sorted(recorder.take_reworded())
    for start in range(0, len(waiting), INDEXED_AT_ONCE):
        _index(catalog, waiting[start : start + INDEXED_AT_ONCE])


def index_forgotten(catalog: Catalog) -> None:
    """Make datasets findable that a door left behind when it was cut off."""
    try:
        with catalog.reading() as session:
            forgotten = list_unindexed(session)
    except DBAPIError as error:
        raise _explain(catalog, error.orig or error) from error
    if forgotten:
        _index(catalog, forgotten)


def _index(catalog: Catalog, dataset_ids: Sequence[int]) -> None:
    try:
        with catalog.writing() as session:
            index_datasets(session, dataset_ids)
    except DBAPIError as error:
        raise _explain(catalog, error.orig or error) from error
