"""The facets that claims are made of, as typed structs, and notes on those that do not fit."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from msgspec import Meta, Raw, Struct, field

from floe.catalog.recording.facets import (
    ColumnLineage,
    Documentation,
    JobType,
    LifecycleStateChange,
    Ownership,
    Schema,
)
from floe.catalog.recording.lenient import Note, read_facet
from floe.events.errors import BadEventError, Reason
from floe.events.openlineage import DatasetPart, Event, read_event
from floe.events.reasons import LONGEST

ASSERTIONS = "dataQualityAssertions"
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Text = Annotated[str, Meta(min_length=1)]


class Identifier(Struct, gc=False):
    """Another name of a dataset."""

    namespace: Annotated[str, Meta(min_length=1, max_length=LONGEST["namespace"])]
    name: Annotated[str, Meta(min_length=1, max_length=LONGEST["name"])]


class Symlinks(Struct, gc=False):
    """The symlinks facet."""

    identifiers: list[Identifier] = []


class Assertion(Struct, gc=False):
    """A check that others ran, and whether it passed."""

    assertion: Text
    success: bool
    name: str | None = None
    column: str | None = None
    severity: str | None = None


class Assertions(Struct, gc=False):
    """The dataQualityAssertions facet."""

    assertions: list[Assertion] = []


class OutputStatistics(Struct, gc=False):
    """The outputStatistics facet."""

    rows: Count | None = field(name="rowCount", default=None)
    size: Count | None = None


class NominalTime(Struct, gc=False):
    """The nominalTime facet."""

    start: str | None = field(name="nominalStartTime", default=None)


class ParentRun(Struct, gc=False):
    """The run that a run is a part of."""

    run_id: str = field(name="runId", default="")


class ParentJob(Struct, gc=False):
    """The job that a run is a part of."""

    namespace: Annotated[str, Meta(min_length=1, max_length=LONGEST["namespace"])]
    name: str


class Parent(Struct, gc=False):
    """The parent facet."""

    run: ParentRun = field(default_factory=ParentRun)
    job: ParentJob | None = None


class FloeRun(Struct, gc=False):
    """The floe facet: what floe's own runs and its clients say of a run."""

    historical: bool = False
    business_date: str | None = field(name="businessDate", default=None)
    inputs: dict[str, list[str]] | None = None
    holder: str | None = None


NOT_OURS = FloeRun()
_RUN: Mapping[str, type[Struct]] = {"parent": Parent, "nominalTime": NominalTime, "floe": FloeRun}
_JOB: Mapping[str, type[Struct]] = {
    "documentation": Documentation,
    "ownership": Ownership,
    "jobType": JobType,
}
_DATASET: Mapping[str, type[Struct]] = {
    "documentation": Documentation,
    "ownership": Ownership,
    "lifecycleStateChange": LifecycleStateChange,
    "schema": Schema,
    "columnLineage": ColumnLineage,
    "symlinks": Symlinks,
    ASSERTIONS: Assertions,
}
_INPUT: Mapping[str, type[Struct]] = {ASSERTIONS: Assertions}
_OUTPUT: Mapping[str, type[Struct]] = {**_INPUT, "outputStatistics": OutputStatistics}


def list_notes(body: bytes) -> list[Reason]:
    """List the parts of a stored event's facets that were left out, because they do not fit."""
    try:
        event = read_event(body)
    except BadEventError as error:
        # It was stored before the rule that it breaks.
        return [Reason("$", str(error))]
    notes: list[Reason] = []
    for path, facets, known in _places(event):
        for name, facet in known.items():
            if facets and name in facets:
                notes += _notes(f"{path}.{name}", facets[name], facet)
    return notes


def _notes(path: str, raw: Raw, facet: type[Struct]) -> list[Reason]:
    found: list[Note] = []
    if bytes(raw) == b"null":
        # It says that there is none.
        return []
    read_facet(raw, facet, found.append)
    return [Reason(f"{path}{note.path}", note.message) for note in found]


def _places(
    event: Event,
) -> Iterator[tuple[str, Mapping[str, Raw] | None, Mapping[str, type[Struct]]]]:
    if event.run is not None:
        yield "$.run.facets", event.run.facets, _RUN
    if event.job is not None:
        yield "$.job.facets", event.job.facets, _JOB
    for path, dataset in _datasets(event):
        yield f"{path}.facets", dataset.facets, _DATASET
        yield f"{path}.inputFacets", dataset.input_facets, _INPUT
        yield f"{path}.outputFacets", dataset.output_facets, _OUTPUT


def _datasets(event: Event) -> Iterator[tuple[str, DatasetPart]]:
    if event.dataset is not None:
        yield "$.dataset", event.dataset
    for name, datasets in (("inputs", event.inputs), ("outputs", event.outputs)):
        for place, dataset in enumerate(datasets or ()):
            yield f"$.{name}[{place}]", dataset
