"""Events with every facet field replaced by a value of every JSON type."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.events.factory import recently, run_id

# The examples of the OpenLineage specification, and facets of minimal adapters.
FACETS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "openlineage_facets.json").read_text()
)
# As JSON text, because Python would format some of these numbers and texts differently.
VALUES = (
    "null",
    "true",
    "0",
    "-1",
    str(10**30),
    "1" + "0" * 5000,
    "1.5",
    "1e400",
    '""',
    '"text"',
    json.dumps("long " * 2000),
    r'"\ud800"',
    "[]",
    "[null]",
    "[5]",
    '["text"]',
    "[[]]",
    "[{}]",
    "{}",
    '{"a": 1}',
    '{"name": [], "fields": 5, "inputFields": "x", "run": [1]}',
    "[" * 200 + "]" * 200,
)
_MARK = '"@here {}"'


class Spot(NamedTuple):
    """A field of a facet: where the facet is, its name, and the path of the field."""

    location: str
    facet: str
    way: tuple[str | int, ...]


def list_spots() -> list[Spot]:
    """Every field of every facet, and each facet as a whole."""
    return [
        Spot(location, facet, way)
        for location, facets in FACETS.items()
        for facet, content in facets.items()
        for way in _ways(content)
    ]


def _ways(content: Any) -> Iterator[tuple[str | int, ...]]:
    yield ()
    entries: list[tuple[str | int, Any]] = []
    if isinstance(content, dict):
        entries = list(content.items())
    elif isinstance(content, list):
        entries = list(enumerate(content))
    for key, value in entries:
        for way in _ways(value):
            yield (key, *way)


def each_field_of_each_type() -> Iterator[bytes]:
    """Events with one field replaced: among all facets, and with its facet alone."""
    index = 0
    for spot in list_spots():
        for value in VALUES:
            yield _event(index, {spot: value})
            # Here, a facet that is only a fallback for another is used.
            alone: dict[str, dict[str, Any]] = {location: {} for location in FACETS}
            alone[spot.location] = {spot.facet: FACETS[spot.location][spot.facet]}
            yield _event(index + 1, {spot: value}, alone)
            index += 2


def several_fields_at_random(seed: int, size: int) -> Iterator[bytes]:
    """Events with a few fields replaced, the same ones for the same seed."""
    chosen, spots = random.Random(seed), list_spots()
    for index in range(size):
        count = chosen.randint(2, 6)
        changes = {spot: chosen.choice(VALUES) for spot in chosen.sample(spots, count)}
        yield _event(1_000_000 * seed + index, changes)


def _event(
    index: int, changes: dict[Spot, str], facets: dict[str, dict[str, Any]] = FACETS
) -> bytes:
    # All facets by default, because one may affect how another one is read.
    facets = {location: dict(some) for location, some in facets.items()}
    values: list[tuple[str, str]] = []
    for spot, value in changes.items():
        mark = _MARK.format(len(values))
        facets[spot.location][spot.facet] = _replaced(
            facets[spot.location][spot.facet], spot.way, json.loads(mark)
        )
        values.append((mark, value))
    text = json.dumps(_body(index, facets))
    for mark, value in values:
        text = text.replace(mark, value)
    return text.encode()


def _replaced(content: Any, way: tuple[str | int, ...], value: Any) -> Any:
    if not way or not isinstance(content, dict | list):
        return value
    copy: Any = content.copy()
    copy[way[0]] = _replaced(copy[way[0]], way[1:], value)
    return copy


def _body(index: int, facets: dict[str, dict[str, Any]]) -> dict[str, Any]:
    kinds = ("COMPLETE", "START", "FAIL")
    return {
        "eventType": "COMPLETE" if index % 2 else kinds[index // 2 % 3],
        "eventTime": recently(index % 60).isoformat(),
        "run": {"runId": run_id(f"fuzz {index}"), "facets": facets["run"]},
        "job": {"namespace": "fuzz", "name": f"job {index % 20}", "facets": facets["job"]},
        "inputs": [
            {
                "namespace": "fuzz",
                "name": f"in {index % 7}",
                "facets": facets["dataset"],
                "inputFacets": facets["input"],
            }
        ],
        "outputs": [
            {
                "namespace": "fuzz",
                "name": f"out {index % 11}",
                "facets": facets["dataset"],
                "outputFacets": facets["output"],
            }
        ],
    }
