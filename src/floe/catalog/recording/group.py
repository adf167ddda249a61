"""Record a group of claims in one transaction; if one of them fails, find it and leave it out."""

import logging
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from floe.catalog.database import Catalog
from floe.catalog.recording.claims import EventClaim
from floe.catalog.recording.record import Recorder
from floe.catalog.recording.scope import StaleKnowledgeError, UnstorableClaimError
from floe.catalog.search.documents import index_datasets, list_unindexed
from floe.catalog.stores import Fault
from floe.errors import FloeError

log = logging.getLogger(__name__)
# After so many tries it is no other writer that is in the way.
TRIES, CAREFUL = 5, 2
INDEXED_AT_ONCE = 500
# PostgreSQL: serialization failure, deadlock.
PASSING = frozenset({"40001", "40P01"})
Item = TypeVar("Item")


class CatalogUnavailableError(FloeError):
    """The catalog's database cannot be written now. Nothing was stored; retry later."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The catalog cannot be written just now: {reason}")


class EventFailedError(FloeError):
    """floe itself failed on an event. The traceback is in the log under the same id."""

    def __init__(self, error_id: str) -> None:
        self.reason = error_id
        super().__init__(
            f"floe failed on this event (error id {error_id}). "
            f"The log of the API has the traceback under that id: please report it."
        )


def log_failure(error: Exception) -> EventFailedError:
    """Log an unexpected error under a new id; return the answer that names the id."""
    error_id = uuid.uuid4().hex[:12]
    log.error("An event failed (error id %s).", error_id, exc_info=error)
    return EventFailedError(error_id)


class _RefusedError(Exception):
    """The database refused a group, perhaps because of one event in it."""

    def __init__(self, answer: FloeError) -> None:
        self.answer = answer
        super().__init__(str(answer))


def record_group(
    catalog: Catalog, recorder: Recorder, claims: Sequence[EventClaim], now: datetime
) -> dict[int, FloeError]:
    """Commit a group; return the errors of single claims, by their place in it.

    Whatever goes wrong with a claim concerns that claim: its neighbours are stored. Only a
    database that cannot be written concerns all of them and raises CatalogUnavailableError.
    """
    failed = _isolate(claims, lambda some: _commit(catalog, recorder, some, now))
    return {
        place: error.answer if isinstance(error, _RefusedError) else log_failure(error)
        for place, error in failed.items()
    }


def _isolate(items: Sequence[Item], work: Callable[[Sequence[Item]], None]) -> dict[int, Exception]:
    """Do the work for all items; on an error halve them until the failing ones stand alone."""
    try:
        work(items)
    except CatalogUnavailableError:
        raise
    except Exception as error:  # noqa: BLE001 - reported for the one item that it concerns
        if len(items) == 1:
            return {0: error}
    else:
        return {}
    middle = len(items) // 2
    left, right = _isolate(items[:middle], work), _isolate(items[middle:], work)
    return {**left, **{middle + place: error for place, error in right.items()}}


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
        except UnstorableClaimError as error:
            recorder.start_anew()
            raise _RefusedError(error) from error
        except (DBAPIError, driver_error) as error:
            recorder.start_anew()
            cause = getattr(error, "orig", None) or error
            if not _may_pass(catalog, cause) or attempt == TRIES - 1:
                raise _failure_of(catalog, cause) from error
        except PoolTimeoutError as error:
            raise CatalogUnavailableError("all its connections are busy.") from error
        except BaseException:
            recorder.start_anew()
            raise
        else:
            recorder.memory.commit()
            return
    raise CatalogUnavailableError("other writers were faster each time.")


def _may_pass(catalog: Catalog, cause: BaseException) -> bool:
    """Whether another try may do: another writer was in the way, or more has to be looked at."""
    is_taken = isinstance(cause, catalog.engine.dialect.loaded_dbapi.IntegrityError)
    return is_taken or getattr(cause, "sqlstate", None) in PASSING


def _failure_of(catalog: Catalog, cause: BaseException) -> Exception:
    answer = _explain(catalog, cause)
    # An unknown error may be due to one event. It stays retriable, because it may be an outage.
    is_outage = catalog.store.fault_of(cause) is Fault.DATABASE
    return answer if is_outage else _RefusedError(answer)


def _explain(catalog: Catalog, cause: BaseException) -> FloeError:
    lines = str(cause).strip().splitlines()
    reason = lines[0] if lines else type(cause).__name__
    if catalog.store.fault_of(cause) is Fault.DATA:
        return UnstorableClaimError(reason)
    return CatalogUnavailableError(reason)


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
    """Index datasets. One that cannot be indexed is logged, and must not keep others out."""

    def index(some: Sequence[int]) -> None:
        try:
            with catalog.writing() as session:
                index_datasets(session, some)
        except DBAPIError as error:
            raise _explain(catalog, error.orig or error) from error

    for place, error in _isolate(dataset_ids, index).items():
        log.error("Dataset %s cannot be searched for.", dataset_ids[place], exc_info=error)
