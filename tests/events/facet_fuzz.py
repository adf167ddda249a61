"""Events whose facets have every field replaced by a value of every JSON type."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.events.factory import recently, run_id

# The examples that come with the specification of OpenLineage, and facets of minimal adapters.
FACETS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "openlineage_facets.json").read_text()
)
# As JSON texts: some of them are numbers and texts that Python would not write so.
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
    """A field of a facet: where the facet stands, its name, and the way to the field."""

    place: str
    facet: str
    way: tuple[str | int, ...]


def list_spots() -> list[Spot]:
    """Every field of every facet, and each facet as a whole."""
    return [
        Spot(place, facet, way)
        for place, facets in FACETS.items()
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
    """Events with one field replaced: beside all other facets, and with its facet alone."""
    number = 0
    for spot in list_spots():
        for value in VALUES:
            yield _event(number, {spot: value})
            # A facet that is used only where another one is missing is used here.
            alone: dict[str, dict[str, Any]] = {place: {} for place in FACETS}
            alone[spot.place] = {spot.facet: FACETS[spot.place][spot.facet]}
            yield _event(number + 1, {spot: value}, alone)
            number += 2


def several_fields_at_random(seed: int, size: int) -> Iterator[bytes]:
    """Events with a few fields replaced, the same ones for the same seed."""
    chosen, spots = random.Random(seed), list_spots()
    for number in range(size):
        count = chosen.randint(2, 6)
        changes = {spot: chosen.choice(VALUES) for spot in chosen.sample(spots, count)}
        yield _event(1_000_000 * seed + number, changes)


def _event(
    number: int, changes: dict[Spot, str], facets: dict[str, dict[str, Any]] = FACETS
) -> bytes:
    # All facets by default, because one may affect how another one is read.
    facets = {place: dict(some) for place, some in facets.items()}
    values: list[tuple[str, str]] = []
    for spot, value in changes.items():
        mark = _MARK.format(len(values))
        facets[spot.place][spot.facet] = _replaced(
            facets[spot.place][spot.facet], spot.way, json.loads(mark)
        )
        values.append((mark, value))
    text = json.dumps(_body(number, facets))
    for mark, value in values:
        text = text.replace(mark, value)
    return text.encode()


def _replaced(content: Any, way: tuple[str | int, ...], value: Any) -> Any:
    if not way or not isinstance(content, dict | list):
        return value
    copy: Any = content.copy()
    copy[way[0]] = _replaced(copy[way[0]], way[1:], value)
    return copy


def _body(number: int, facets: dict[str, dict[str, Any]]) -> dict[str, Any]:
    kinds = ("COMPLETE", "START", "FAIL")
    return {
        "eventType": "COMPLETE" if number % 2 else kinds[number // 2 % 3],
        "eventTime": recently(number % 60).isoformat(),
        "run": {"runId": run_id(f"fuzz {number}"), "facets": facets["run"]},
        "job": {"namespace": "fuzz", "name": f"job {number % 20}", "facets": facets["job"]},
        "inputs": [
            {
                "namespace": "fuzz",
                "name": f"in {number % 7}",
                "facets": facets["dataset"],
                "inputFacets": facets["input"],
            }
        ],
        "outputs": [
            {
                "namespace": "fuzz",
                "name": f"out {number % 11}",
                "facets": facets["dataset"],
                "outputFacets": facets["output"],
            }
        ],
    }
