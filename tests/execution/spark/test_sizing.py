"""How much of a machine Spark takes, in a container and outside of one."""

import os
from pathlib import Path

import pytest

from floe.execution.spark.sizing import (
    GIB,
    available_memory,
    default_cores,
    default_memory,
    memory_of,
)


def control_group(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("there", "taken"),
    [(GIB, "1024m"), (6 * GIB, "2048m"), (24 * GIB, "8192m"), (512 * GIB, "8192m")],
)
def test_a_third_of_the_memory_is_taken_within_bounds(there: int, taken: str) -> None:
    assert memory_of(there) == taken


def test_the_limit_of_a_container_counts_not_the_machine(tmp_path: Path) -> None:
    group = control_group(tmp_path, memory_dot_max=str(3 * GIB), cpu_dot_max="100000 100000")
    assert default_memory(group) == "1024m"
    assert default_cores(group) == 1


def test_control_groups_of_old_count_as_well(tmp_path: Path) -> None:
    group = control_group(
        tmp_path,
        memory__memory_dot_limit_in_bytes=str(GIB),
        cpu__cpu_dot_cfs_quota_us="50000",
        cpu__cpu_dot_cfs_period_us="100000",
    )
    assert available_memory(group) == GIB
    assert default_cores(group) == 1


@pytest.mark.parametrize("limit", ["max 100000", "-1 100000", "rubbish"])
def test_without_a_limit_the_machine_counts(tmp_path: Path, limit: str) -> None:
    group = control_group(tmp_path, memory_dot_max="max", cpu_dot_max=limit)
    assert default_cores(group) == len(os.sched_getaffinity(0))
    assert available_memory(group) > GIB
