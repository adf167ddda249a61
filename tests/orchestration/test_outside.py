"""What others make and where they fail, as Dagster sees it."""

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
from floe.orchestration.loading import load
from floe.orchestration.outside import bring_in, build_outside
from floe.orchestration.parts import Parts
from tests.orchestration.nights import FEED, MONDAY, TUESDAY
from tests.orchestration.projects import load_definitions, load_parts, make_project

FX = AssetKey(["market", "fx"])
PRODUCER = AssetCheckKey(FX, "floe_producer")


@dataclass
class Border:
    """A catalog that others report to, and a Dagster instance."""

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
        looked = bring_in(self.instance, self.workspace, self.external, self.position)
        self.position = looked.position
        return looked.reported

    def versions(self) -> list[tuple[str | None, Any]]:
        """The partitions and versions that Dagster was told of, the oldest first."""
        found = self.instance.fetch_materializations(FX, limit=100, ascending=True).records
        told = [one.asset_materialization for one in found]
        return [(one.partition, one.metadata["floe/version"].value) for one in told if one]

    def verdicts(self) -> list[bool]:
        """How the check on the producer came out, the newest first."""
        history = self.instance.event_log_storage.get_asset_check_execution_history(
            PRODUCER, limit=100
        )
        events = [one.event.dagster_event for one in history if one.event]
        return [one.asset_check_evaluation_data.passed for one in events if one]


@pytest.fixture
def border(tmp_path: Path) -> Iterator[Border]:
    project = make_project(tmp_path, f"datasets: {{market.fx: {FEED}}}")
    with (
        DagsterInstance.ephemeral() as instance,
        open_workspace(load(project).site) as workspace,
    ):
        yield Border(workspace, instance, {FX: AssetSpec(FX)})


def test_a_version_that_others_made_is_a_materialisation_once(border: Border) -> None:
    border.ready(TUESDAY, "2026-09-01.a", rows=12)
    assert border.look() == 1
    assert border.versions() == [(None, "2026-09-01.a")]
    assert border.look() == 0
    # Registered again, or read again from an old place.
    border.ready(TUESDAY, "2026-09-01.a")
    border.position = 0
    assert border.look() == 0
    assert border.versions() == [(None, "2026-09-01.a")]


def test_whoever_dies_between_two_versions_repeats_neither(border: Border) -> None:
    for number in (1, 2, 3):
        border.ready(TUESDAY, f"2026-09-01.{number}")
    assert border.look() == 3
    border.position = 0
    assert border.look() == 0
    assert [tag for _, tag in border.versions()] == ["2026-09-01.1", "2026-09-01.2", "2026-09-01.3"]


def test_the_business_date_is_the_partition_where_the_asset_has_such(border: Border) -> None:
    daily = DailyPartitionsDefinition("2026-09-01", end_offset=1)
    border.external = {FX: AssetSpec(FX, partitions_def=daily)}
    border.ready(TUESDAY, "2026-09-01.1")
    assert border.look() == 1
    assert border.versions() == [("2026-09-01", "2026-09-01.1")]
    border.ready(MONDAY, "2026-08-31.1")
    looked = bring_in(border.instance, border.workspace, border.external, border.position)
    assert looked.reported == 0
    assert "market.fx 2026-08-31.1 is ready, and the partitions" in looked.unfit[0]


def test_a_producer_that_failed_fails_the_check_until_it_succeeds(border: Border) -> None:
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


def test_a_foreign_job_that_failed_is_told_by_its_name_and_its_words(border: Border) -> None:
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
    found = record.event.dagster_event.asset_check_evaluation_data
    assert found.description == "AUTOSYS/load_fx failed: exit code 3"


def test_what_the_project_makes_itself_is_not_from_outside(border: Border) -> None:
    border.external = {}
    border.ready(TUESDAY, "2026-09-01.1")
    border.failed("2026-09-01.2")
    assert border.look() == 0


def test_external_assets_get_the_check_and_the_project_its_sensor(tmp_path: Path) -> None:
    make_project(tmp_path, f"datasets: {{market.fx: {FEED}}}")
    parts = load_parts(tmp_path)
    assert "floe_outside" in [one.name for one in parts.sensors]
    definitions = load_definitions(tmp_path)
    keys = definitions.resolve_asset_graph().asset_check_keys
    assert PRODUCER in keys


def test_a_project_without_external_assets_needs_no_sensor(tmp_path: Path) -> None:
    @asset
    def made() -> None: ...

    loading = load(make_project(tmp_path))
    parts = build_outside(loading, Parts(assets=(made,)))
    assert parts.sensors == ()
    Definitions.validate_loadable(parts.definitions())
