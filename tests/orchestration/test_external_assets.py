"""Versions and failures of external producers in Dagster."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest
from dagster import (
    AssetCheckKey,
    AssetKey,
    AssetSpec,
    DagsterInstance,
    DailyPartitionsDefinition,
    Definitions,
    asset,
)

from floe.client.messages import dataset_message, process_message
from floe.events.ingest import read_claim
from floe.execution.workspace import Workspace, open_workspace
from floe.orchestration.external_assets import build_external, build_external_sensor, report_changes
from floe.orchestration.io_manager import build_io_manager
from floe.orchestration.loading import Parts, load
from floe.orchestration.processes import build_processes
from tests.orchestration.nights import FEED, MONDAY, TUESDAY
from tests.orchestration.projects import load_definitions, load_parts, make_project

FX = AssetKey(["market", "fx"])
PRODUCER = AssetCheckKey(FX, "floe_producer")


@dataclass
class Border:
    """A catalog with external reports, and a Dagster instance."""

    workspace: Workspace
    instance: DagsterInstance
    external: Mapping[AssetKey, AssetSpec]
    position: int = 0

    def send(self, message: dict[str, Any]) -> None:
        claim = read_claim(msgspec.json.encode(message))
        assert self.workspace.door.submit([claim]).result() == {}

    def ready(self, day: date, version: str, **more: Any) -> None:
        self.send(dataset_message("market.fx", version, business_date=day, **more))

    def failed(self, version: str) -> None:
        self.send(dataset_message("market.fx", version, "FAILED", error="the feed is late"))

    def look(self) -> int:
        result = report_changes(self.instance, self.workspace, self.external, self.position)
        self.position = result.position
        return result.reported

    def versions(self) -> list[tuple[str | None, Any]]:
        """The partitions and versions that were reported to Dagster, oldest first."""
        result = self.instance.fetch_materializations(FX, limit=100, ascending=True).records
        reported = [item.asset_materialization for item in result]
        return [(item.partition, item.metadata["floe/version"].value) for item in reported if item]

    def verdicts(self) -> list[bool]:
        """The results of the producer check, newest first."""
        history = self.instance.event_log_storage.get_asset_check_execution_history(
            PRODUCER, limit=100
        )
        events = [item.event.dagster_event for item in history if item.event]
        return [event.asset_check_evaluation_data.passed for event in events if event]


@pytest.fixture
def border(tmp_path: Path) -> Iterator[Border]:
    project = make_project(tmp_path, f"datasets: {{market.fx: {FEED}}}")
    with (
        DagsterInstance.ephemeral() as instance,
        open_workspace(load(project).site) as workspace,
    ):
        yield Border(workspace, instance, {FX: AssetSpec(FX)})


def test_an_external_version_is_materialized_once(border: Border) -> None:
    border.ready(TUESDAY, "2026-09-01.a", rows=12)
    assert border.look() == 1
    assert border.versions() == [(None, "2026-09-01.a")]
    assert border.look() == 0
    # Registered again, or read again from an old position.
    border.ready(TUESDAY, "2026-09-01.a")
    border.position = 0
    assert border.look() == 0
    assert border.versions() == [(None, "2026-09-01.a")]


def test_a_crash_between_two_versions_repeats_neither(border: Border) -> None:
    for index in (1, 2, 3):
        border.ready(TUESDAY, f"2026-09-01.{index}")
    assert border.look() == 3
    border.position = 0
    assert border.look() == 0
    assert [tag for _, tag in border.versions()] == ["2026-09-01.1", "2026-09-01.2", "2026-09-01.3"]


def test_the_business_date_is_the_partition_of_a_partitioned_asset(border: Border) -> None:
    daily = DailyPartitionsDefinition("2026-09-01", end_offset=1)
    border.external = {FX: AssetSpec(FX, partitions_def=daily)}
    border.ready(TUESDAY, "2026-09-01.1")
    assert border.look() == 1
    assert border.versions() == [("2026-09-01", "2026-09-01.1")]
    border.ready(MONDAY, "2026-08-31.1")
    result = report_changes(border.instance, border.workspace, border.external, border.position)
    assert result.reported == 0
    assert "market.fx 2026-08-31.1 is ready but not reported to Dagster" in result.unmatched[0]


def test_a_failed_producer_fails_the_check_until_it_succeeds(border: Border) -> None:
    border.failed("2026-09-01.1")
    assert border.look() == 1
    assert border.verdicts() == [False]
    border.ready(TUESDAY, "2026-09-01.2")
    border.look()
    assert border.verdicts() == [True, False]
    border.ready(TUESDAY, "2026-09-01.3")
    border.look()
    assert border.verdicts() == [True, False]
    border.position = 0
    assert border.look() == 0


def test_a_failed_foreign_job_is_reported_with_its_name_and_message(border: Border) -> None:
    for status in ("SUCCESS", "FAILED"):
        border.send(
            process_message(
                "AUTOSYS/load_fx",
                status,
                business_date=TUESDAY,
                outputs=["market.fx"],
                error="exit code 3" if status == "FAILED" else None,
            )
        )
    border.look()
    (record,) = border.instance.event_log_storage.get_asset_check_execution_history(
        PRODUCER, limit=1
    )
    assert record.event is not None
    assert record.event.dagster_event is not None
    result = record.event.dagster_event.asset_check_evaluation_data
    assert result.description == "AUTOSYS/load_fx failed: exit code 3"


def test_datasets_of_the_project_are_not_external(border: Border) -> None:
    border.external = {}
    border.ready(TUESDAY, "2026-09-01.1")
    border.failed("2026-09-01.2")
    assert border.look() == 0


def test_external_assets_get_the_check_and_the_project_gets_the_sensor(tmp_path: Path) -> None:
    make_project(tmp_path, f"datasets: {{market.fx: {FEED}}}")
    parts = load_parts(tmp_path)
    assert "floe_outside" in [sensor.name for sensor in parts.sensors]
    definitions = load_definitions(tmp_path)
    keys = definitions.resolve_asset_graph().asset_check_keys
    assert PRODUCER in keys


def test_a_project_without_external_assets_needs_no_sensor(tmp_path: Path) -> None:
    @asset
    def made() -> None: ...

    loading = load(make_project(tmp_path))
    parts = build_external_sensor(loading, Parts(assets=(made,)))
    assert parts.sensors == ()
    Definitions.validate_loadable(parts.definitions())


FEEDS = """
    datasets:
      market.fx_rates:
        description: Rates at the end of the day.
        format: csv
        location: "landing/{business_date}/*.csv"
        category: market data
        owner: {team: Market Data, email: market-data@example.com}
        tags: [feed]
      risk.exposure: {}
    processes:
      exposure:
        inputs: {fx: market.fx_rates}
        outputs: {exposure: risk.exposure}
        sql: select * from fx
"""


def parts_of(folder: Path, before: Parts | None = None) -> Parts:
    loading = load(make_project(folder, FEEDS))
    parts = build_external(loading, build_processes(loading, before or Parts()))
    return build_io_manager(loading, parts)


def test_a_feed_is_an_external_asset_with_its_owner(tmp_path: Path) -> None:
    parts = parts_of(tmp_path)
    feed = parts.specs[AssetKey(["market", "fx_rates"])]
    assert feed.description == "Rates at the end of the day."
    assert feed.group_name == "market_data"
    assert feed.owners == ["market-data@example.com", "team:Market Data"]
    assert feed.kinds == {"csv"}
    assert "feed" in feed.tags
    graph = parts.definitions().resolve_asset_graph()
    assert graph.external_asset_keys == {AssetKey(["market", "fx_rates"])}


def test_a_dataset_that_an_asset_produces_is_not_external(tmp_path: Path) -> None:
    @asset(key=["market", "fx_rates"])
    def fx_rates() -> None: ...

    parts = parts_of(tmp_path, Parts(assets=(fx_rates,)))
    assert not parts.definitions().resolve_asset_graph().external_asset_keys
