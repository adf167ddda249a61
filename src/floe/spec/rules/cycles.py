"""Find cycles in a graph of names."""

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

MOST_CYCLES = 20


def find_cycles(upstream: Mapping[str, set[str]]) -> list[list[str]]:
    """Return cycles, each in the direction of flow; no two share a node.

    `upstream` gives for each node those that it follows. Each cycle starts at the node
    that comes first in the mapping.
    """
    graph = {node: set(before) for node, before in upstream.items()}
    order = {node: place for place, node in enumerate(graph)}
    cycles: list[list[str]] = []
    while len(cycles) < MOST_CYCLES:
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            cycle: list[str] = error.args[1][:-1]
        else:
            break
        start = min(range(len(cycle)), key=lambda place: order[cycle[place]])
        cycles.append(cycle[start:] + cycle[:start])
        for node in cycle:
            graph.pop(node)
        for before in graph.values():
            before.difference_update(cycle)
    return cycles
