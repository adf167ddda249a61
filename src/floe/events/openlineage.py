"""OpenLineage events as bytes: decode the event, compress the body for storage.

Facets stay raw here: most of them are already known by their bytes and are never decoded."""

import re
import threading
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

import zstandard
from msgspec import DecodeError, Meta, Raw, Struct, ValidationError, field
from msgspec.json import Decoder

from floe.errors import FloeError
from floe.events.errors import (
    FIRST_YEAR,
    LAST_YEAR,
    MAX_DATASETS,
    MAX_LENGTHS,
    NULL_CHARACTER,
    BadEventError,
    InvalidEventError,
    MalformedEventError,
    Reason,
    list_reasons,
)

EventType = Literal["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]
Namespace = Annotated[str, Meta(min_length=1, max_length=MAX_LENGTHS["namespace"])]
Name = Annotated[str, Meta(min_length=1, max_length=MAX_LENGTHS["name"])]
RunId = Annotated[str, Meta(min_length=1, max_length=MAX_LENGTHS["runId"])]
Facets = dict[str, Raw] | None
MAX_CLOCK_SKEW = timedelta(days=1)
NULL = rb"\u0000"
# An escaped backslash does not start an escape sequence.
ESCAPED_NULL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


class DatasetPart(Struct, gc=False):
    """A dataset in an event."""

    namespace: Namespace
    name: Name
    facets: Facets = None
    input_facets: Facets = field(name="inputFacets", default=None)
    output_facets: Facets = field(name="outputFacets", default=None)


class JobPart(Struct, gc=False):
    """The job of an event."""

    namespace: Namespace
    name: Name
    facets: Facets = None


class RunPart(Struct, gc=False):
    """The run of an event. Its times are an extension that minimal adapters use."""

    run_id: RunId = field(name="runId")
    facets: Facets = None
    start_time: datetime | None = field(name="startTime", default=None)
    end_time: datetime | None = field(name="endTime", default=None)


class Event(Struct, gc=False):
    """A RunEvent (run and job), a JobEvent or a DatasetEvent."""

    event_type: EventType | None = field(name="eventType", default=None)
    event_time: datetime | None = field(name="eventTime", default=None)
    run: RunPart | None = None
    job: JobPart | None = None
    dataset: DatasetPart | None = None
    inputs: Annotated[list[DatasetPart], Meta(max_length=MAX_DATASETS)] | None = None
    outputs: Annotated[list[DatasetPart], Meta(max_length=MAX_DATASETS)] | None = None


_decoder = Decoder(Event)


def read_event(body: bytes) -> Event:
    """Decode an event; raise BadEventError with every reason if it is invalid."""
    _check_text(body)
    try:
        event = _decoder.decode(body)
    except ValidationError as error:
        raise _invalid(body, str(error)) from error
    except (DecodeError, UnicodeDecodeError) as error:
        raise MalformedEventError(str(error).rstrip(".")) from error
    except RecursionError as error:
        raise InvalidEventError([Reason("$", "is nested too deeply")]) from error
    if not _is_complete(event):
        raise _invalid(body, "is not an event")
    return event


def _check_text(body: bytes) -> None:
    """Reject invalid UTF-8 and NUL, which nothing else finds because facets stay raw."""
    try:
        if not body.isascii():
            body.decode()
    except UnicodeDecodeError as error:
        raise MalformedEventError(str(error)) from error
    if NULL in body and ESCAPED_NULL.search(body):
        raise _invalid(body, f"contains {NULL_CHARACTER}")


def _invalid(body: bytes, summary: str) -> BadEventError:
    try:
        reasons = list_reasons(body)
    except (DecodeError, UnicodeDecodeError) as error:
        return MalformedEventError(str(error).rstrip("."))
    except RecursionError:
        return InvalidEventError([Reason("$", "is nested too deeply")])
    return InvalidEventError(reasons or [Reason("$", summary)])


def _is_complete(event: Event) -> bool:
    """Return whether an event has a run and job, a job or a dataset, and a valid time."""
    if event.job is None and (event.run is not None or event.dataset is None):
        return False
    timestamp = event_timestamp(event)
    return timestamp is not None and FIRST_YEAR <= timestamp.year < LAST_YEAR


def event_timestamp(event: Event) -> datetime | None:
    """Return the event's own time, else the end or start time of the run."""
    if event.event_time is not None or event.run is None:
        return event.event_time
    ended = event.event_type not in (None, "START", "RUNNING")
    return (event.run.end_time if ended else None) or event.run.start_time or event.run.end_time


def future_reasons(event: Event, now: datetime) -> list[Reason]:
    """List the times of an event that are more than a day in the future.

    Versions are ordered by these times, so one from the far future would stay the newest.
    """
    latest = now + MAX_CLOCK_SKEW
    run = event.run
    times = (
        ("$.eventTime", event.event_time),
        ("$.run.startTime", run.start_time if run else None),
        ("$.run.endTime", run.end_time if run else None),
    )
    paths = [
        path for path, timestamp in times if timestamp is not None and _aware(timestamp) > latest
    ]
    if not paths:
        return []
    message = (
        f"is more than a day in the future (now {now:%Y-%m-%dT%H:%MZ}); check the sender's clock"
    )
    return [Reason(path, message) for path in paths]


def _aware(timestamp: datetime) -> datetime:
    return timestamp.replace(tzinfo=UTC) if timestamp.tzinfo is None else timestamp


ZSTD, PLAIN = "zstd", "json"
LEVEL = 3
# Compressing a smaller body makes it larger.
MIN_COMPRESSED = 200
MAX_BODY = 64 * 1024 * 1024


class _Local(threading.local):
    """One compressor per thread: they are not thread-safe, and slow to create."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=LEVEL)
        self.decompressor = zstandard.ZstdDecompressor()


_local = _Local()


class DamagedBodyError(FloeError):
    """The stored body of an event cannot be decompressed."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The stored body of the event is damaged: {reason}")


def compress(body: bytes) -> tuple[bytes, str]:
    """Return a body as stored, and its codec."""
    if len(body) < MIN_COMPRESSED:
        return body, PLAIN
    return _local.compressor.compress(body), ZSTD


def decompress(payload: bytes, codec: str) -> bytes:
    """Return a stored body as it was received."""
    if codec == PLAIN:
        return payload
    try:
        body: bytes = _local.decompressor.decompress(payload, max_output_size=MAX_BODY)
    except zstandard.ZstdError as error:
        raise DamagedBodyError(str(error)) from error
    return body
