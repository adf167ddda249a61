"""List every reason why a body is not an event. Slow and complete: only bad events come here."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
from msgspec import ValidationError

from floe.events.errors import Reason

# As long as the catalog's columns are wide.
LONGEST = {"namespace": 200, "name": 300, "runId": 200}
EVENT_TYPES = ("START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER")
MOST_DATASETS = 10_000
# Outside of these a time is a mistake, and would fill partitions that nobody drops.
FIRST_YEAR, LAST_YEAR = 1970, 2200
NULL_CHARACTER = "U+0000, which databases do not keep"


def list_reasons(body: bytes) -> list[Reason]:
    """Walk the whole body and report each value that does not fit."""
    event = msgspec.json.decode(body)
    return [*_event(event), *_nulls(event, "$")]


def _event(event: Any) -> Iterator[Reason]:
    if not isinstance(event, dict):
        yield Reason("$", f"must be an object, not {_kind(event)}")
        return
    kind = event.get("eventType")
    if kind is not None and kind not in EVENT_TYPES:
        yield Reason("$.eventType", f"must be one of {', '.join(EVENT_TYPES)}")
    yield from _whole(event)
    yield from _run(event.get("run"))
    for part in ("job", "dataset"):
        if event.get(part) is not None:
            yield from _named(event[part], f"$.{part}")
    for part in ("inputs", "outputs"):
        yield from _datasets(event.get(part), f"$.{part}")


def _whole(event: dict[str, Any]) -> Iterator[Reason]:
    run, job, dataset = (event.get(part) for part in ("run", "job", "dataset"))
    if run is not None and job is None:
        yield Reason("$.job", "is missing: an event of a run names its job")
    if run is None and job is None and dataset is None:
        yield Reason("$", "has neither a run and a job, nor a job, nor a dataset")
    times = [(event, "eventTime", "$")]
    if isinstance(run, dict):
        times += [(run, "startTime", "$.run"), (run, "endTime", "$.run")]
    if all(part.get(key) is None for part, key, _ in times):
        yield Reason("$.eventTime", "is missing")
    for part, key, path in times:
        yield from _time(part, key, path)


def _run(run: Any) -> Iterator[Reason]:
    if run is None:
        return
    if not isinstance(run, dict):
        yield Reason("$.run", f"must be an object, not {_kind(run)}")
        return
    yield from _text(run, "runId", "$.run")
    yield from _facets(run, "facets", "$.run")


def _datasets(datasets: Any, path: str) -> Iterator[Reason]:
    if datasets is None:
        return
    if not isinstance(datasets, list):
        yield Reason(path, f"must be a list, not {_kind(datasets)}")
        return
    if len(datasets) > MOST_DATASETS:
        yield Reason(path, f"has {len(datasets):,} entries, {MOST_DATASETS:,} are allowed")
    for index, dataset in enumerate(datasets):
        yield from _named(dataset, f"{path}[{index}]")


def _named(part: Any, path: str) -> Iterator[Reason]:
    if not isinstance(part, dict):
        yield Reason(path, f"must be an object, not {_kind(part)}")
        return
    yield from _text(part, "namespace", path)
    yield from _text(part, "name", path)
    for facets in ("facets", "inputFacets", "outputFacets"):
        yield from _facets(part, facets, path)


def _text(part: dict[str, Any], key: str, path: str) -> Iterator[Reason]:
    value = part.get(key)
    if key not in part:
        yield Reason(f"{path}.{key}", "is missing")
    elif not isinstance(value, str):
        yield Reason(f"{path}.{key}", f"must be text, not {_kind(value)}")
    elif not value:
        yield Reason(f"{path}.{key}", "is empty")
    elif len(value) > LONGEST[key]:
        yield Reason(f"{path}.{key}", f"has {len(value):,} characters, {LONGEST[key]} are allowed")


def _time(part: dict[str, Any], key: str, path: str) -> Iterator[Reason]:
    if part.get(key) is None:
        return
    try:
        moment = msgspec.convert(part[key], datetime)
    except ValidationError:
        yield Reason(f"{path}.{key}", "must be a time such as 2026-09-01T06:30:00Z")
        return
    if not FIRST_YEAR <= moment.year < LAST_YEAR:
        yield Reason(f"{path}.{key}", f"must lie between {FIRST_YEAR} and {LAST_YEAR}")


def _facets(part: dict[str, Any], key: str, path: str) -> Iterator[Reason]:
    value = part.get(key)
    if value is not None and not isinstance(value, dict):
        yield Reason(f"{path}.{key}", f"must be an object, not {_kind(value)}")


def _nulls(value: Any, path: str) -> Iterator[Reason]:
    if isinstance(value, str) and "\0" in value:
        yield Reason(path, f"has {NULL_CHARACTER}")
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _nulls(one, f"{path}[{index}]")
    elif isinstance(value, dict):
        for key, one in value.items():
            if "\0" in key:
                yield Reason(path, f"has a key with {NULL_CHARACTER}")
            yield from _nulls(one, f"{path}.{key}")


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
    return "null" if value is None else names.get(type(value), "a number")
