"""OpenLineage on the wire: read a RunEvent, a DatasetEvent or a JobEvent from its bytes.

The shape is decoded at once, facets stay raw: most of them are known by their bytes already and
need not be read again.
"""

from datetime import datetime
from typing import Annotated, Literal

from msgspec import DecodeError, Meta, Raw, Struct, ValidationError, field
from msgspec.json import Decoder

from floe.events.errors import InvalidEventError, MalformedEventError, Reason
from floe.events.reasons import LONGEST, MOST_DATASETS, list_reasons

EventType = Literal["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]
Namespace = Annotated[str, Meta(min_length=1, max_length=LONGEST["namespace"])]
Name = Annotated[str, Meta(min_length=1, max_length=LONGEST["name"])]
RunId = Annotated[str, Meta(min_length=1, max_length=LONGEST["runId"])]
Facets = dict[str, Raw] | None
# Outside of these a time is a mistake, and would fill partitions that nobody drops.
FIRST_YEAR, LAST_YEAR = 1970, 2200


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
    try:
        event = _decode(body)
    except (DecodeError, UnicodeDecodeError) as error:
        raise MalformedEventError(str(error).rstrip(".")) from error
    except RecursionError as error:
        raise InvalidEventError([Reason("$", "is nested too deeply")]) from error
    if problem := _shape_problem(event):
        raise InvalidEventError([problem])
    return event


def _decode(body: bytes) -> Event:
    try:
        return _decoder.decode(body)
    except ValidationError as error:
        raise InvalidEventError(list_reasons(body)) from error


def _shape_problem(event: Event) -> Reason | None:
    """An event is of a run with its job, of a job, or of a dataset; and it has a time."""
    if event.run is not None and event.job is None:
        return Reason("$.job", "is missing: an event of a run names its job")
    if event.run is None and event.job is None and event.dataset is None:
        return Reason("$", "has neither a run and a job, nor a job, nor a dataset")
    moment = moment_of(event)
    if moment is None:
        return Reason("$.eventTime", "is missing")
    if not FIRST_YEAR <= moment.year < LAST_YEAR:
        return Reason("$.eventTime", f"must lie between {FIRST_YEAR} and {LAST_YEAR}")
    return None


def moment_of(event: Event) -> datetime | None:
    """When it happened: the event's own time, else the end or start that the run gives."""
    if event.event_time is not None or event.run is None:
        return event.event_time
    ended = event.event_type not in (None, "START", "RUNNING")
    return (event.run.end_time if ended else None) or event.run.start_time or event.run.end_time
