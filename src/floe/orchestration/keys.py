"""What commands ask about partitions: which there are, what keys they have, what has drifted."""

from dataclasses import dataclass
from pathlib import Path

from dagster import partition_loading_context

from floe.orchestration.definitions import build_parts
from floe.orchestration.drift import partition_drift
from floe.orchestration.instances import open_instance
from floe.orchestration.loading import load
from floe.orchestration.partitions import build_partitions
from floe.orchestration.parts import Parts


@dataclass(frozen=True)
class PartitionKeys:
    """Partitions of a project, and the keys that they have now."""

    name: str
    kind: str
    keys: tuple[str, ...]


def list_partitions(project: Path | None = None) -> list[PartitionKeys]:
    """Return the partitions that a project declares, each with its keys."""
    loading = load(project)
    declared = loading.site.spec.orchestration.partitions
    made = build_partitions(loading, Parts()).partitions
    with (
        open_instance(loading.site) as instance,
        partition_loading_context(dynamic_partitions_store=instance),
    ):
        return [
            PartitionKeys(name, one.type, tuple(made[name].get_partition_keys()))
            for name, one in sorted(declared.items())
        ]


def find_drift(project: Path | None = None) -> list[str]:
    """Say for which assets partitions were made that they no longer have."""
    loading = load(project)
    parts = build_parts(loading)
    with open_instance(loading.site) as instance:
        return partition_drift(instance, parts)
