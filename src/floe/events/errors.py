"""Errors for invalid events, with every reason and its JSON path."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from msgspec import ValidationError

from floe.errors import FloeError


@dataclass(frozen=True)
class Reason:
    """One problem, at a JSON path such as `$.run.runId`."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class BadEventError(FloeError):
    """An event is invalid. The sender must change it; sending it again will not help."""


class MalformedEventError(BadEventError):
    """The body is not valid JSON."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"The body is not JSON: {detail}.")


class InvalidEventError(BadEventError):
    """The body is valid JSON but not a valid event."""

    def __init__(self, reasons: Sequence[Reason]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("; ".join(map(str, reasons)))


# The widths of the catalog's columns.
MAX_LENGTHS = {"namespace": 200, "name": 300, "runId": 200}
EVENT_TYPES = ("START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER")
MAX_DATASETS = 10_000
# Times outside these years are errors, and would create partitions that are never dropped.
FIRST_YEAR, LAST_YEAR = 1970, 2200
NULL_CHARACTER = "U+0000, which databases cannot store"


def list_reasons(body: bytes) -> list[Reason]:
    """Return every invalid value of a body. Slow: only for invalid events."""
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
        yield Reason("$.job", "is missing: a run event must name its job")
    if run is None and job is None and dataset is None:
        yield Reason("$", "has no run with a job, no job and no dataset")
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
    if len(datasets) > MAX_DATASETS:
        yield Reason(path, f"has {len(datasets):,} entries; at most {MAX_DATASETS:,} are allowed")
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
    elif len(value) > MAX_LENGTHS[key]:
        yield Reason(
            f"{path}.{key}",
            f"has {len(value):,} characters; at most {MAX_LENGTHS[key]} are allowed",
        )


def _time(part: dict[str, Any], key: str, path: str) -> Iterator[Reason]:
    if part.get(key) is None:
        return
    try:
        timestamp = msgspec.convert(part[key], datetime)
    except ValidationError:
        yield Reason(f"{path}.{key}", "must be a timestamp such as 2026-09-01T06:30:00Z")
        return
    if not FIRST_YEAR <= timestamp.year < LAST_YEAR:
        yield Reason(f"{path}.{key}", f"must be between {FIRST_YEAR} and {LAST_YEAR}")


def _facets(part: dict[str, Any], key: str, path: str) -> Iterator[Reason]:
    value = part.get(key)
    if value is not None and not isinstance(value, dict):
        yield Reason(f"{path}.{key}", f"must be an object, not {_kind(value)}")


def _nulls(value: Any, path: str) -> Iterator[Reason]:
    if isinstance(value, str) and "\0" in value:
        yield Reason(path, f"contains {NULL_CHARACTER}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _nulls(item, f"{path}[{index}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            if "\0" in key:
                yield Reason(path, f"has a key with {NULL_CHARACTER}")
            yield from _nulls(item, f"{path}.{key}")


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
    return "null" if value is None else names.get(type(value), "a number")
