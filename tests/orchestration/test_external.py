"""Feeds and what others own are external assets."""

from pathlib import Path

from dagster import AssetKey, asset

from floe.orchestration.external import build_external
from floe.orchestration.io_manager import build_io_manager
from floe.orchestration.loading import load
from floe.orchestration.parts import Parts
from floe.orchestration.processes import build_processes
from tests.orchestration.projects import make_project

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


def test_what_an_asset_of_the_project_makes_is_not_external(tmp_path: Path) -> None:
    @asset(key=["market", "fx_rates"])
    def fx_rates() -> None: ...

    parts = parts_of(tmp_path, Parts(assets=(fx_rates,)))
    assert not parts.definitions().resolve_asset_graph().external_asset_keys
