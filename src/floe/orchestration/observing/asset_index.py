"""Assets by how runs are reported: their process, inputs and partitions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from dagster import AssetKey, AssetSpec, PartitionsDefinition

from floe.orchestration.business_dates import date_of_key
from floe.orchestration.dbt.nodes import MATERIALIZED, UNIQUE_ID
from floe.orchestration.loading import Parts
from floe.orchestration.processes import PROCESS_TAG
from floe.orchestration.selection import name_of
from floe.spec.identity import ProcessId, dbt_process, floe_process


@dataclass(frozen=True)
class AssetIndex:
    """The assets of a project, by how their runs are reported."""

    project: str
    zone: str
    processes: frozenset[AssetKey] = frozenset()
    """Assets made by processes, whose runs report themselves."""
    models: Mapping[AssetKey, ProcessId] = field(default_factory=dict)
    """Assets that are dbt models."""
    tests: Mapping[tuple[AssetKey, str], ProcessId] = field(default_factory=dict)
    """Checks that are dbt tests."""
    dbt_projects: Mapping[AssetKey, ProcessId] = field(default_factory=dict)
    """Assets that stand for a whole dbt project."""
    inputs: Mapping[AssetKey, tuple[str, ...]] = field(default_factory=dict)
    """The datasets that each asset declares as upstream."""
    partitions: Mapping[AssetKey, PartitionsDefinition[Any]] = field(default_factory=dict)

    def process_of(self, keys: Iterable[AssetKey], step: str) -> ProcessId:
        """Return the process of a step: that of its asset, or its own if it makes several."""
        first, *others = sorted(keys)
        if others:
            return floe_process(self.project, step)
        return self.dbt_projects.get(first) or floe_process(self.project, name_of(first))

    def date_of(self, key: AssetKey, partition: str | None) -> date | None:
        """Return the business date of an asset's partition, if it has one."""
        if partition is None:
            return None
        return date_of_key(partition, self.partitions.get(key))


def index_assets(parts: Parts, project: str, zone: str) -> AssetIndex:
    """Build the index from the definitions of a project."""
    specs = parts.specs
    checks = [
        check
        for definition in parts.assets
        if not isinstance(definition, AssetSpec)
        for check in definition.check_specs
    ]
    return AssetIndex(
        project,
        zone,
        processes=frozenset(key for key, spec in specs.items() if PROCESS_TAG in spec.metadata),
        models={
            key: _model_process(str(spec.metadata[UNIQUE_ID]))
            for key, spec in specs.items()
            if UNIQUE_ID in spec.metadata
        },
        tests={
            (check.asset_key, check.name): _test_process(str(check.metadata[UNIQUE_ID]), check.name)
            for check in checks
            if UNIQUE_ID in (check.metadata or {})
        },
        dbt_projects={
            key: dbt_process(key.path[-1], key.path[-1])
            for key, spec in specs.items()
            if spec.metadata.get(MATERIALIZED) == "project"
        },
        inputs={
            key: tuple(name_of(dep.asset_key) for dep in spec.deps) for key, spec in specs.items()
        },
        partitions={
            key: spec.partitions_def
            for key, spec in specs.items()
            if spec.partitions_def is not None
        },
    )


def _model_process(unique_id: str) -> ProcessId:
    """`model.shop.stg_orders` → `dbt/shop/stg_orders`."""
    _, project, name = unique_id.split(".", 2)
    return dbt_process(project, name)


def _test_process(unique_id: str, name: str) -> ProcessId:
    """`test.shop.not_null_orders_id.<hash>` → `dbt/shop/not_null_orders_id`."""
    return dbt_process(unique_id.split(".", 2)[1], name)
