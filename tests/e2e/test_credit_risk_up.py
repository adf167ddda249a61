"""The credit-risk demo under `floe up`: it loads, and its batch runs through Dagster."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from floe.execution.workspace import load_site
from floe.orchestration.home import read_web_secret
from floe.orchestration.instance import open_instance
from floe.services.state import read_up
from floe.settings import ProjectPaths
from tests.e2e.test_credit_risk import copy_demo
from tools.demo.launching import Dagster
from tools.demo.running import COMMAND

DAY = "2026-09-01"
FEEDS = ("market.fx_rates", "credit.positions", "credit.collateral", "ref.counterparties")
pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]


@dataclass(frozen=True)
class Night:
    """The demo after its batch, while everything is still up."""

    root: Path
    failures: list[str]

    def floe(self, *words: str) -> Any:
        done = subprocess.run(
            [*COMMAND, *words, "--json"],
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def states(self, dataset: str) -> set[str]:
        versions = self.floe("versions", dataset)["versions"]
        return {row["state"] for row in versions if row["tag"].startswith(DAY)}


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    root = copy_demo(tmp_path_factory.mktemp("credit_risk_up")).root
    up = (*COMMAND, "up", "--detach", "--port", "0", "--dagster-port", "0")
    try:
        subprocess.run(up, cwd=root, check=True)
        status = read_up(ProjectPaths(root))
        assert status is not None
        (url,) = [service.address for service in status.services if service.name == "web"]
        dagster = Dagster(str(url), read_web_secret(root / ".floe" / "dagster"), "credit-risk")
        run_id = dagster.launch("credit_night", DAY)
        yield Night(root, dagster.follow(run_id, Console(file=sys.stderr)))
    finally:
        subprocess.run([*COMMAND, "down"], cwd=root, check=False)


def test_the_project_loads_and_the_batch_writes_every_dataset(night: Night) -> None:
    assert night.failures == []
    services = {
        service["service"]: service["state"] for service in night.floe("status")["services"]
    }
    assert services["web"] == "running"
    datasets = [hit["name"] for hit in night.floe("datasets", "--limit", "100")["hits"]]
    assert len(datasets) == 11
    assert {name: "READY" in night.states(name) for name in datasets} == dict.fromkeys(
        datasets, True
    )


def test_a_database_table_is_received_like_a_feed(night: Night) -> None:
    assert [night.states(name) for name in FEEDS] == [{"READY"}] * len(FEEDS)
    (version,) = night.floe("versions", "ref.counterparties")["versions"]
    assert version["rows"] == 39


def test_dagster_has_the_partition_of_each_version(night: Night) -> None:
    from dagster import AssetKey

    with open_instance(load_site(ProjectPaths(night.root))) as instance:
        partitions = {
            name: instance.get_materialized_partitions(AssetKey(name.split(".")))
            for name in ("credit.positions_eur", "credit.exposure", "credit.expected_loss")
        }
    assert partitions == {name: {DAY} for name in partitions}
