"""Facets that claims are built from, as typed structs, and notes on invalid parts.

The subset facet becomes paths such as `business_date=2026-09-01/region=EU`, because the date rules
parse paths.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Annotated, Any

from msgspec import Meta, Raw, Struct, field

from floe.catalog.recording.facets import (
    ColumnLineage,
    Documentation,
    JobType,
    LifecycleStateChange,
    Note,
    Ownership,
    Schema,
    read_facet,
)
from floe.events.errors import MAX_LENGTHS, BadEventError, InvalidEventError, Reason
from floe.events.openlineage import DatasetPart, Event, read_event

ASSERTIONS = "dataQualityAssertions"
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Text = Annotated[str, Meta(min_length=1)]


class Identifier(Struct, gc=False):
    """Another name of a dataset."""

    namespace: Annotated[str, Meta(min_length=1, max_length=MAX_LENGTHS["namespace"])]
    name: Annotated[str, Meta(min_length=1, max_length=MAX_LENGTHS["name"])]


class Symlinks(Struct, gc=False):
    """The symlinks facet."""

    identifiers: list[Identifier] = []


class Assertion(Struct, gc=False):
    """The result of a check that another tool ran."""

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
    """The parent run of a run."""

    run_id: str = field(name="runId", default="")


class ParentJob(Struct, gc=False):
    """The job of the parent run."""

    namespace: Annotated[str, Meta(min_length=1, max_length=MAX_LENGTHS["namespace"])]
    name: str


class Parent(Struct, gc=False):
    """The parent facet."""

    run: ParentRun = field(default_factory=ParentRun)
    job: ParentJob | None = None


class FloeRun(Struct, gc=False):
    """The floe facet, which floe's own runs and its clients send."""

    historical: bool = False
    business_date: str | None = field(name="businessDate", default=None)
    inputs: dict[str, list[str]] | None = None
    holder: str | None = None
    attempt: Annotated[int, Meta(ge=1, le=32_767)] = 1


class AirflowTask(Struct, gc=False):
    """The task instance of Airflow's run facet."""

    try_number: Annotated[int, Meta(ge=0, le=32_767)] = 1


class AirflowRun(Struct, gc=False):
    """The facet that Airflow's provider sends with its runs."""

    task: AirflowTask = field(name="taskInstance", default_factory=AirflowTask)


NO_FLOE_FACET = FloeRun()
_RUN: Mapping[str, type[Struct]] = {
    "parent": Parent,
    "nominalTime": NominalTime,
    "floe": FloeRun,
    "airflow": AirflowRun,
}
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
    """List the parts of a stored event's facets that were ignored as invalid."""
    try:
        event = read_event(body)
    except BadEventError as error:
        # The event was stored before the rule that it violates existed.
        return [Reason("$", str(error))]
    notes: list[Reason] = []
    for path, facets, known in _facet_groups(event):
        for name, facet in known.items():
            if facets and name in facets:
                notes += _notes(f"{path}.{name}", facets[name], facet)
    return notes


def _notes(path: str, raw: Raw, facet: type[Struct]) -> list[Reason]:
    notes: list[Note] = []
    if bytes(raw) == b"null":
        # Null means that the facet is absent.
        return []
    read_facet(raw, facet, notes.append)
    return [Reason(f"{path}{note.path}", note.message) for note in notes]


def _facet_groups(
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
        for index, dataset in enumerate(datasets or ()):
            yield f"$.{name}[{index}]", dataset


MAX_LOCATIONS = 10_000
# A deeper condition is not a list of partitions.
MAX_DEPTH = 20
_DATE_KEYS = {"year": 0, "month": 1, "day": 2}


def subset_locations(facet: dict[str, Any]) -> tuple[str, ...]:
    """Return the locations of an `outputCondition`, without duplicates."""
    condition = facet.get("outputCondition")
    locations = dict.fromkeys(islice(_locations(condition, 0), MAX_LOCATIONS + 1))
    if len(locations) > MAX_LOCATIONS:
        text = f"has more than {MAX_LOCATIONS:,} locations; send several events"
        raise InvalidEventError([Reason("outputs[].outputFacets.subset", text)])
    return tuple(locations)


def _locations(condition: Any, depth: int) -> Iterator[str]:
    if not isinstance(condition, dict) or depth > MAX_DEPTH:
        return
    kind = condition.get("type")
    if kind == "location":
        locations = _as_list(condition.get("locations"))
        yield from (location for location in locations if isinstance(location, str))
    elif kind == "partition":
        for partition in _as_list(condition.get("partitions")):
            if isinstance(partition, dict) and isinstance(partition.get("dimensions"), dict):
                yield _path(partition["dimensions"])
    elif kind == "binary" and condition.get("operator") == "OR":
        yield from _locations(condition.get("left"), depth + 1)
        yield from _locations(condition.get("right"), depth + 1)
    elif dimensions := _equalities(condition, depth):
        yield _path(dimensions)


def _equalities(condition: Any, depth: int) -> dict[str, Any]:
    """Return the equalities of `a = 1 AND b = 2`; ignore other conditions."""
    if not isinstance(condition, dict) or depth > MAX_DEPTH:
        return {}
    if condition.get("type") == "binary" and condition.get("operator") == "AND":
        left = _equalities(condition.get("left"), depth + 1)
        return {**left, **_equalities(condition.get("right"), depth + 1)}
    if condition.get("type") != "compare" or condition.get("comparison") != "EQUAL":
        return {}
    sides = [condition.get("left"), condition.get("right")]
    fields = [side.get("field") for side in sides if isinstance(side, dict) and "field" in side]
    values = [side.get("value") for side in sides if isinstance(side, dict) and "value" in side]
    if len(fields) == len(values) == 1 and isinstance(fields[0], str):
        return {fields[0]: values[0]}
    return {}


def _path(dimensions: dict[str, Any]) -> str:
    ordered = sorted(dimensions, key=lambda key: (_DATE_KEYS.get(key, 3), key))
    return "/".join(f"{key}={dimensions[key]}".replace("\0", "") for key in ordered)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
