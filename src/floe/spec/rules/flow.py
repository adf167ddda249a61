"""Rules for the flow of data: nothing is its own upstream, and each dataset has one writer."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from floe.spec.datasets import DatasetSpec
from floe.spec.findings import KeyPath, Problem
from floe.spec.processes import EARLIER_DATES
from floe.spec.rules.cycles import find_cycles
from floe.spec.rules.draft import Draft


@dataclass(frozen=True)
class _Write:
    process: str
    path: KeyPath


def check_flow(draft: Draft) -> Iterator[Problem]:
    """Find cycles, and datasets that several processes write."""
    writes: dict[str, list[_Write]] = defaultdict(list)
    for name, process in draft.spec.processes.items():
        for alias, output in process.outputs.items():
            path = ("processes", name, "outputs", alias)
            writes[output.dataset].append(_Write(name, path))
    yield from _check_writers(draft, writes)
    yield from _check_cycles(draft, writes)


def _check_writers(draft: Draft, writes: dict[str, list[_Write]]) -> Iterator[Problem]:
    for dataset, (first, *others) in writes.items():
        path = ("datasets", dataset)
        mistyped = "writers" not in draft.written(path) and not draft.lacks(
            path, DatasetSpec, "writers"
        )
        if not others or mistyped or draft.written(path).get("writers") == "many":
            continue
        for other in others:
            message = f"'{dataset}' is already written by '{first.process}'"
            hint = "Let one process write it, or say writers: many on the dataset."
            also = (first.path, ("datasets", dataset, "writers"))
            yield Problem(other.path, message, hint, also=also)


def _check_cycles(draft: Draft, writes: dict[str, list[_Write]]) -> Iterator[Problem]:
    reads = {name: _reads(draft, name) for name in draft.spec.processes}
    upstream = {
        name: {write.process for dataset in inputs.values() for write in writes.get(dataset, ())}
        for name, inputs in reads.items()
    }
    for cycle in find_cycles(upstream):
        yield _cycle_problem(cycle, reads, writes)


def _reads(draft: Draft, name: str) -> dict[str, str]:
    """What a process reads of its own date: what it reads of earlier ones closes no cycle."""
    inputs = draft.spec.processes[name].inputs
    return {
        alias: input_.dataset
        for alias, input_ in inputs.items()
        if input_.mapping not in EARLIER_DATES
    }


def _cycle_problem(
    cycle: list[str], reads: dict[str, dict[str, str]], writes: dict[str, list[_Write]]
) -> Problem:
    """Print a cycle as the path that the data takes."""
    walk: list[str] = []
    paths: list[KeyPath] = []
    for process, after in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
        alias, dataset, write = next(
            (alias, dataset, write)
            for alias, dataset in reads[after].items()
            for write in writes.get(dataset, ())
            if write.process == process
        )
        walk += [process, dataset]
        paths += [("processes", after, "inputs", alias), write.path]
    message = f"the process is its own upstream: {' → '.join([*walk, cycle[0]])}"
    hint = "Break the cycle, or read an earlier date (mapping: previous_business_day)."
    return Problem(paths[-2], message, hint, also=tuple(paths))
