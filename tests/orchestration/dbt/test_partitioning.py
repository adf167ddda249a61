"""Partitions of models: which models may have them, and the variables that dbt gets."""

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from dagster import AssetsDefinition, AssetSpec, DailyPartitionsDefinition

from floe.execution.asset_versions import VersionKey
from floe.orchestration.dbt.models import check_partitions
from floe.orchestration.dbt.windows import Window
from floe.orchestration.loading import Parts, load
from floe.spec.findings import SpecError
from tests.orchestration.projects import load_parts, make_project

DAILY = DailyPartitionsDefinition("2026-01-01")


def partitioned(parts: Parts, *names: str) -> Parts:
    """Set daily partitions on some assets."""

    def daily(spec: AssetSpec) -> AssetSpec:
        chosen = ".".join(spec.key.path) in names
        return spec.replace_attributes(partitions_def=DAILY) if chosen else spec

    assets = [
        asset.map_asset_specs(daily) if isinstance(asset, AssetsDefinition) else asset
        for asset in parts.assets
    ]
    return replace(parts, assets=tuple(assets))


def test_incremental_model_and_snapshot_may_have_partitions(bank: Path) -> None:
    parts = partitioned(load_parts(bank), "gold.limits_used", "history.booked_then")
    assert check_partitions(load(bank), parts) is parts


def test_partitions_on_a_model_that_is_rebuilt_whole_are_rejected_at_their_pattern(
    bank: Path,
) -> None:
    parts = partitioned(load_parts(bank), "silver.booked", "gold.limits_used")
    text = (
        "transforms:\n  - {type: dbt, path: dbt}\n"
        "orchestration:\n"
        "  partitions: {daily: {type: time_window, start: '2026-01-01'}}\n"
        "  assets:\n"
        "    silver.b*: {partitions: daily}\n"
    )
    make_project(bank, text)
    with pytest.raises(SpecError) as refused:
        check_partitions(load(bank), parts)
    (finding,) = refused.value.findings
    assert finding.key == "orchestration.assets.silver.b*.partitions"
    assert "dbt builds 'silver.booked' as a table" in finding.message


def test_window_reaches_dbt_as_vars() -> None:
    day = VersionKey(date(2026, 1, 5))
    start, end = (datetime(2026, 1, n, tzinfo=UTC) for n in (5, 6))
    assert Window(day, (("2026-01-05", day),), start, end).variables == {
        "floe_business_date": "2026-01-05",
        "floe_partition_key": "2026-01-05",
        "floe_start": "2026-01-05T00:00:00+00:00",
        "floe_end": "2026-01-06T00:00:00+00:00",
    }


def test_without_partitions_only_the_business_date_reaches_dbt() -> None:
    assert Window(VersionKey(date(2026, 1, 5))).variables == {"floe_business_date": "2026-01-05"}
