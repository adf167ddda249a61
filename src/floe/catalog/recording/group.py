"""Record a group of claims in one transaction; isolate the failing ones."""

import logging
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from floe.catalog.database import Catalog
from floe.catalog.recording.claims import EventClaim
from floe.catalog.recording.recorder import Recorder
from floe.catalog.recording.transaction import StaleCacheError, UnstorableClaimError
from floe.catalog.search_index import index_datasets, list_unindexed
from floe.catalog.stores import Fault
from floe.errors import FloeError

log = logging.getLogger(__name__)
# More failures than this are not caused by concurrent writers.
MAX_ATTEMPTS = 5
# From this attempt on, also check for rare conflicts.
CAREFUL_ATTEMPT = 2
INDEX_BATCH = 500
# PostgreSQL: serialization failure, deadlock.
RETRIABLE_STATES = frozenset({"40001", "40P01"})
Item = TypeVar("Item")


class CatalogUnavailableError(FloeError):
    """The catalog database is not writable. Nothing was stored; retry later."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The catalog cannot be written to right now: {reason}")


class EventFailedError(FloeError):
    """floe itself failed on an event. The traceback is in the log under the same id."""

    def __init__(self, error_id: str) -> None:
        self.reason = error_id
        super().__init__(
            f"floe failed on this event (error id {error_id}). "
            f"The log of the API has the traceback under that id: please report it."
        )


def log_failure(error: Exception) -> EventFailedError:
    """Log an unexpected error under a new id; return the error to send to the client."""
    error_id = uuid.uuid4().hex[:12]
    log.error("An event failed (error id %s).", error_id, exc_info=error)
    return EventFailedError(error_id)


class _RejectedError(Exception):
    """The database rejected a group, perhaps because of a single event."""

    def __init__(self, answer: FloeError) -> None:
        self.answer = answer
        super().__init__(str(answer))


def record_group(
    catalog: Catalog, recorder: Recorder, claims: Sequence[EventClaim], now: datetime
) -> dict[int, FloeError]:
    """Commit a group; return the errors of single claims, by their index.

    A claim that fails does not affect the others: they are stored. Only an unavailable database
    concerns all of them and raises CatalogUnavailableError.
    """
    failed = _isolate(claims, lambda part: _commit(catalog, recorder, part, now))
    return {
        index: error.answer if isinstance(error, _RejectedError) else log_failure(error)
        for index, error in failed.items()
    }


def _isolate(items: Sequence[Item], work: Callable[[Sequence[Item]], None]) -> dict[int, Exception]:
    """Process all items; on an error, bisect until the failing items are isolated."""
    try:
        work(items)
    except CatalogUnavailableError:
        raise
    except Exception as error:  # noqa: BLE001 - reported for the failing item
        if len(items) == 1:
            return {0: error}
    else:
        return {}
    middle = len(items) // 2
    left, right = _isolate(items[:middle], work), _isolate(items[middle:], work)
    return {**left, **{middle + index: error for index, error in right.items()}}


def _commit(
    catalog: Catalog, recorder: Recorder, claims: Sequence[EventClaim], now: datetime
) -> None:
    driver_error = catalog.engine.dialect.loaded_dbapi.Error
    for attempt in range(MAX_ATTEMPTS):
        recorder.careful = attempt >= CAREFUL_ATTEMPT
        try:
            recorder.days.prepare(catalog, {claim.day for claim in claims}, now.date())
            connection = recorder.connection(catalog.engine)
            with connection.begin():
                recorder.record(connection, claims, now)
        except StaleCacheError:
            recorder.reset()
        except UnstorableClaimError as error:
            recorder.reset()
            raise _RejectedError(error) from error
        except (DBAPIError, driver_error) as error:
            recorder.reset()
            cause = getattr(error, "orig", None) or error
            if not _is_retriable(catalog, cause) or attempt == MAX_ATTEMPTS - 1:
                raise _failure_of(catalog, cause) from error
        except PoolTimeoutError as error:
            raise CatalogUnavailableError("all connections are busy.") from error
        except BaseException:
            recorder.reset()
            raise
        else:
            recorder.cache.commit()
            return
    raise CatalogUnavailableError("other writers changed the same rows on every attempt.")


def _is_retriable(catalog: Catalog, cause: BaseException) -> bool:
    """Tell whether a retry may help: a concurrent writer, or a conflict to look up."""
    is_conflict = isinstance(cause, catalog.engine.dialect.loaded_dbapi.IntegrityError)
    return is_conflict or getattr(cause, "sqlstate", None) in RETRIABLE_STATES


def _failure_of(catalog: Catalog, cause: BaseException) -> Exception:
    answer = _explain(catalog, cause)
    # A single event may cause an unknown error. It stays retriable, because it may be an outage.
    is_outage = catalog.store.fault_of(cause) is Fault.DATABASE
    return answer if is_outage else _RejectedError(answer)


def _explain(catalog: Catalog, cause: BaseException) -> FloeError:
    lines = str(cause).strip().splitlines()
    reason = lines[0] if lines else type(cause).__name__
    if catalog.store.fault_of(cause) is Fault.DATA:
        return UnstorableClaimError(reason)
    return CatalogUnavailableError(reason)


def tidy_up(catalog: Catalog, recorder: Recorder) -> None:
    """Do the store's postponed maintenance while no events come in."""
    try:
        recorder.tidy()
    except catalog.engine.dialect.loaded_dbapi.Error as error:
        raise _explain(catalog, error) from error


def index_recorded(catalog: Catalog, recorder: Recorder) -> None:
    """Index recorded datasets for the search, in separate transactions."""
    dataset_ids = sorted(recorder.take_datasets_to_index())
    for start in range(0, len(dataset_ids), INDEX_BATCH):
        _index(catalog, dataset_ids[start : start + INDEX_BATCH])


def index_missed(catalog: Catalog) -> None:
    """Index datasets that an interrupted writer recorded and did not index."""
    try:
        with catalog.reading() as session:
            missed = list_unindexed(session)
    except DBAPIError as error:
        raise _explain(catalog, error.orig or error) from error
    if missed:
        _index(catalog, missed)


def _index(catalog: Catalog, dataset_ids: Sequence[int]) -> None:
    """Index datasets. A dataset that fails is logged and does not block others."""

    def index(batch: Sequence[int]) -> None:
        try:
            with catalog.writing() as session:
                index_datasets(session, batch)
        except DBAPIError as error:
            raise _explain(catalog, error.orig or error) from error

    for position, error in _isolate(dataset_ids, index).items():
        log.error("Dataset %s could not be indexed.", dataset_ids[position], exc_info=error)
