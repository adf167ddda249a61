"""OpenLineage on the wire: read a RunEvent, a DatasetEvent or a JobEvent from its bytes.

The shape is decoded at once, facets stay raw: most of them are known by their bytes already and
need not be read again.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from msgspec import DecodeError, Meta, Raw, Struct, ValidationError, field
from msgspec.json import Decoder

from floe.events.errors import BadEventError, InvalidEventError, MalformedEventError, Reason
from floe.events.reasons import (
    FIRST_YEAR,
    LAST_YEAR,
    LONGEST,
    MOST_DATASETS,
    NULL_CHARACTER,
    list_reasons,
)

EventType = Literal["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]
Namespace = Annotated[str, Meta(min_length=1, max_length=LONGEST["namespace"])]
Name = Annotated[str, Meta(min_length=1, max_length=LONGEST["name"])]
RunId = Annotated[str, Meta(min_length=1, max_length=LONGEST["runId"])]
Facets = dict[str, Raw] | None
FURTHEST_AHEAD = timedelta(days=1)
NULL = rb"\u0000"
# A backslash that is escaped itself begins nothing.
ESCAPED_NULL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


class DatasetPart(Struct, gc=False):
    """A dataset that an event names."""

    namespace: Namespace
    name: Name
    facets: Facets = None
    input_facets: Facets = field(name="inputFacets", default=None)
    output_facets: Facets = field(name="outputFacets", default=None)


class JobPart(Struct, gc=False):
    """The job that an event is about."""

    namespace: Namespace
    name: Name
    facets: Facets = None


class RunPart(Struct, gc=False):
    """The run that an event is about. Times here are those of minimal adapters."""

    run_id: RunId = field(name="runId")
    facets: Facets = None
    start_time: datetime | None = field(name="startTime", default=None)
    end_time: datetime | None = field(name="endTime", default=None)


class Event(Struct, gc=False):
    """Any event: of a run (run and job), of a job alone, or of a dataset alone."""

    event_type: EventType | None = field(name="eventType", default=None)
    event_time: datetime | None = field(name="eventTime", default=None)
    run: RunPart | None = None
    job: JobPart | None = None
    dataset: DatasetPart | None = None
    inputs: Annotated[list[DatasetPart], Meta(max_length=MOST_DATASETS)] | None = None
    outputs: Annotated[list[DatasetPart], Meta(max_length=MOST_DATASETS)] | None = None


_decoder = Decoder(Event)


def read_event(body: bytes) -> Event:
    """Read an event, or say everything that is wrong with it."""
    _check_text(body)
    try:
        event = _decoder.decode(body)
    except ValidationError as error:
        raise _invalid(body, str(error)) from error
    except (DecodeError, UnicodeDecodeError) as error:
        raise MalformedEventError(str(error).rstrip(".")) from error
    except RecursionError as error:
        raise InvalidEventError([Reason("$", "is nested too deeply")]) from error
    if not _is_whole(event):
        raise _invalid(body, "is not an event")
    return event


def _check_text(body: bytes) -> None:
    """Facets stay raw: nobody else would see that their text is none, or no store's to keep."""
    try:
        if not body.isascii():
            body.decode()
    except UnicodeDecodeError as error:
        raise MalformedEventError(str(error)) from error
    if NULL in body and ESCAPED_NULL.search(body):
        raise _invalid(body, f"has {NULL_CHARACTER}")


def _invalid(body: bytes, summary: str) -> BadEventError:
    try:
        reasons = list_reasons(body)
    except (DecodeError, UnicodeDecodeError) as error:
        return MalformedEventError(str(error).rstrip("."))
    except RecursionError:
        return InvalidEventError([Reason("$", "is nested too deeply")])
    return InvalidEventError(reasons or [Reason("$", summary)])


def _is_whole(event: Event) -> bool:
    """An event is of a run with its job, of a job, or of a dataset; and it has a time."""
    if event.job is None and (event.run is not None or event.dataset is None):
        return False
    moment = moment_of(event)
    return moment is not None and FIRST_YEAR <= moment.year < LAST_YEAR


def moment_of(event: Event) -> datetime | None:
    """When it happened: the event's own time, else the end or start that the run gives."""
    if event.event_time is not None or event.run is None:
        return event.event_time
    ended = event.event_type not in (None, "START", "RUNNING")
    return (event.run.end_time if ended else None) or event.run.start_time or event.run.end_time


def late_reasons(event: Event, now: datetime) -> list[Reason]:
    """List the times of an event that are more than a day ahead: a clock that is wrong.

    Versions are ordered by these times, so one from the far future would stay the newest.
    """
    latest = now + FURTHEST_AHEAD
    run = event.run
    times = (
        ("$.eventTime", event.event_time),
        ("$.run.startTime", run.start_time if run else None),
        ("$.run.endTime", run.end_time if run else None),
    )
    late = [path for path, moment in times if moment is not None and _aware(moment) > latest]
    if not late:
        return []
    message = f"is more than a day ahead of now ({now:%Y-%m-%dT%H:%MZ}); check the sender's clock"
    return [Reason(path, message) for path in late]


def _aware(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
