"""What Spark measured of a query that was fetched. Of writes a Connect server tells nothing."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# How operators call what they measure, files and Iceberg each in their own way.
SUMMED = {
    "scanTime": "scanMilliseconds",
    "totalPlanningDuration": "planningMilliseconds",
    "numFiles": "filesRead",
    "resultDataFiles": "filesRead",
    "filesSize": "bytesRead",
    "totalDataFileSize": "bytesRead",
    "shuffleBytesWritten": "shuffleBytes",
    "spillSize": "spillBytes",
}


def measures_of(frame: "DataFrame") -> dict[str, int]:
    """Return what the operators of a fetched frame measured, each kind summed up."""
    info: Any = frame.executionInfo
    if info is None or info.metrics is None:
        return {}
    _, nodes = info.metrics.extract_graph()
    return sum_up((one.name, one.value) for node in nodes.values() for one in node.metrics)


def sum_up(measured: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Add up what is known by a name here; what no operator measured is not there."""
    sums: dict[str, int] = {}
    for name, value in measured:
        if name in SUMMED:
            sums[SUMMED[name]] = sums.get(SUMMED[name], 0) + int(value)
    return sums
