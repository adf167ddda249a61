"""What the definitions say of assets that an event log does not: who makes them, and for when."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from dagster import AssetKey, AssetSpec, PartitionsDefinition

from floe.orchestration.dbt.checks import UNIQUE_ID
from floe.orchestration.dbt.models import MATERIALIZED
from floe.orchestration.moments import date_of_key
from floe.orchestration.parts import Parts
from floe.orchestration.processes import PROCESS_TAG
from floe.spec.identity import ProcessId, dataset_of_dagster_key, dbt_process, floe_process


@dataclass(frozen=True)
class Knowledge:
    """What is known of the assets of a project."""

    project: str
    zone: str
    processes: frozenset[AssetKey] = frozenset()
    """Assets that processes make, whose runs report themselves."""
    models: Mapping[AssetKey, ProcessId] = field(default_factory=dict)
    """Assets that are models of dbt."""
    tests: Mapping[tuple[AssetKey, str], ProcessId] = field(default_factory=dict)
    """Checks that are tests of dbt."""
    whole: Mapping[AssetKey, ProcessId] = field(default_factory=dict)
    """Assets that are whole projects of dbt."""
    reads: Mapping[AssetKey, tuple[str, ...]] = field(default_factory=dict)
    """The datasets that an asset stands on."""
    partitions: Mapping[AssetKey, PartitionsDefinition[Any]] = field(default_factory=dict)

    def process_of(self, keys: Iterable[AssetKey], step: str) -> ProcessId:
        """Return what a step is a run of: its asset, or itself if it makes several."""
        one, *others = sorted(keys)
        if others:
            return floe_process(self.project, step)
        return self.whole.get(one) or floe_process(self.project, dataset_of(one))

    def date_of(self, key: AssetKey, partition: str | None) -> date | None:
        """Return the business date of a partition of an asset, if it has one."""
        if partition is None:
            return None
        return date_of_key(partition, self.partitions.get(key))


def know(parts: Parts, project: str, zone: str) -> Knowledge:
    """Gather what the definitions of a project say."""
    specs = parts.specs
    models = {key: spec for key, spec in specs.items() if UNIQUE_ID in spec.metadata}
    checks = [
        check for one in parts.assets if not isinstance(one, AssetSpec) for check in one.check_specs
    ]
    return Knowledge(
        project,
        zone,
        frozenset(key for key, spec in specs.items() if PROCESS_TAG in spec.metadata),
        {key: _dbt_process(str(spec.metadata[UNIQUE_ID])) for key, spec in models.items()},
        {
            (check.asset_key, check.name): _dbt_test(str(check.metadata[UNIQUE_ID]), check.name)
            for check in checks
            if UNIQUE_ID in (check.metadata or {})
        },
        {
            key: dbt_process(key.path[-1], key.path[-1])
            for key, spec in specs.items()
            if spec.metadata.get(MATERIALIZED) == "project"
        },
        {key: tuple(dataset_of(dep.asset_key) for dep in spec.deps) for key, spec in specs.items()},
        {
            key: spec.partitions_def
            for key, spec in specs.items()
            if spec.partitions_def is not None
        },
    )


def dataset_of(key: AssetKey) -> str:
    """Return the dataset that an asset is."""
    return dataset_of_dagster_key(list(key.path))


def _dbt_process(unique_id: str) -> ProcessId:
    """`model.shop.stg_orders` → `dbt/shop/stg_orders`."""
    _, project, name = unique_id.split(".", 2)
    return dbt_process(project, name)


def _dbt_test(unique_id: str, name: str) -> ProcessId:
    """`test.shop.not_null_orders_id.<hash>` → `dbt/shop/not_null_orders_id`."""
    return dbt_process(unique_id.split(".", 2)[1], name)
