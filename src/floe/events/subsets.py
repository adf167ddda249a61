"""The subset facet: which part of a dataset a run wrote, as locations.

Whatever the facet says becomes paths such as `business_date=2026-09-01/region=EU`, because the
rules for dates read paths.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from floe.events.errors import InvalidEventError, Reason

MOST_LOCATIONS = 10_000
# Beyond this depth a condition is no longer a list of partitions.
DEEPEST = 20
_DATE_KEYS = {"year": 0, "month": 1, "day": 2}


def subset_locations(facet: dict[str, Any]) -> tuple[str, ...]:
    """Return the locations that an `outputCondition` names, each once."""
    condition = facet.get("outputCondition")
    found = dict.fromkeys(islice(_locations(condition, 0), MOST_LOCATIONS + 1))
    if len(found) > MOST_LOCATIONS:
        text = f"names more than {MOST_LOCATIONS:,} locations. Send several events."
        raise InvalidEventError([Reason("outputs[].outputFacets.subset", text)])
    return tuple(found)


def _locations(condition: Any, depth: int) -> Iterator[str]:
    if not isinstance(condition, dict) or depth > DEEPEST:
        return
    kind = condition.get("type")
    if kind == "location":
        yield from (one for one in _listed(condition.get("locations")) if isinstance(one, str))
    elif kind == "partition":
        for one in _listed(condition.get("partitions")):
            if isinstance(one, dict) and isinstance(one.get("dimensions"), dict):
                yield _path(one["dimensions"])
    elif kind == "binary" and condition.get("operator") == "OR":
        yield from _locations(condition.get("left"), depth + 1)
        yield from _locations(condition.get("right"), depth + 1)
    elif dimensions := _equalities(condition, depth):
        yield _path(dimensions)


def _equalities(condition: Any, depth: int) -> dict[str, Any]:
    """Read `a = 1 AND b = 2`; anything else among them says nothing of a partition."""
    if not isinstance(condition, dict) or depth > DEEPEST:
        return {}
    if condition.get("type") == "binary" and condition.get("operator") == "AND":
        left = _equalities(condition.get("left"), depth + 1)
        return {**left, **_equalities(condition.get("right"), depth + 1)}
    if condition.get("type") != "compare" or condition.get("comparison") != "EQUAL":
        return {}
    sides = [condition.get("left"), condition.get("right")]
    fields = [one.get("field") for one in sides if isinstance(one, dict) and "field" in one]
    values = [one.get("value") for one in sides if isinstance(one, dict) and "value" in one]
    if len(fields) == len(values) == 1 and isinstance(fields[0], str):
        return {fields[0]: values[0]}
    return {}


def _path(dimensions: dict[str, Any]) -> str:
    ordered = sorted(dimensions, key=lambda key: (_DATE_KEYS.get(key, 3), key))
    return "/".join(f"{key}={dimensions[key]}".replace("\0", "") for key in ordered)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
