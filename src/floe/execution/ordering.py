"""The order in which processes run: one that reads what another writes comes after it. Pure."""

from collections.abc import Iterable, Mapping
from graphlib import TopologicalSorter

from floe.spec import ProcessSpec
from floe.spec.processes import EARLIER_DATES


def upstream_of(processes: Mapping[str, ProcessSpec]) -> dict[str, dict[str, bool]]:
    """Return the processes that each one waits for, and whether it cannot do without them.

    What reads only earlier dates waits for nobody: those versions are there or are not.
    """
    writers: dict[str, list[str]] = {}
    for name, process in processes.items():
        for output in process.outputs.values():
            writers.setdefault(output.dataset, []).append(name)
    waits: dict[str, dict[str, bool]] = {name: {} for name in processes}
    for name, process in processes.items():
        for one in process.inputs.values():
            if one.mapping in EARLIER_DATES:
                continue
            for writer in writers.get(one.dataset, ()):
                if writer != name:
                    needed = not one.optional
                    waits[name][writer] = waits[name].get(writer, False) or needed
    return waits


def sorter(waits: Mapping[str, Iterable[str]]) -> TopologicalSorter[str]:
    """Return what hands out the processes that are next, as others are done."""
    sorter = TopologicalSorter({name: list(before) for name, before in waits.items()})
    sorter.prepare()
    return sorter
