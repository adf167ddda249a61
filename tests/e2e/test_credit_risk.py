"""The credit-risk batch on the command line, in a copy of the demo."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from floe.cli import app
from tools.spark_cluster import StandaloneCluster

DEMO = Path(__file__).parent.parent.parent / "demo" / "credit_risk"
FLOE = Path(sys.executable).parent / "floe"
DAY, DAY_BEFORE = "2026-09-01", "2026-08-31"
pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]


@dataclass(frozen=True)
class Night:
    """A copy of the demo."""

    root: Path

    def floe(self, *arguments: str, code: int = 0) -> str:
        """Run a command in this process, which saves the imports."""
        with chdir(self.root):
            done = CliRunner().invoke(app, arguments)
        assert done.exit_code == code, done.output
        return done.stdout

    def floe_alone(self, *arguments: str) -> str:
        """Run a command in its own process, as a user does."""
        done = subprocess.run(
            [str(FLOE), *arguments], cwd=self.root, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run_all(self, day: str = DAY, code: int = 0) -> Any:
        return json.loads(self.floe("run", "--all", "--date", day, "--json", code=code))

    def make_data(self, *arguments: str) -> None:
        subprocess.run(
            [sys.executable, "make_data.py", *arguments],
            cwd=self.root,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def versions(self, dataset: str) -> dict[str, str]:
        listed = json.loads(self.floe("versions", dataset, "--json"))
        return {row["tag"]: row["state"] for row in listed["versions"]}

    def read(self, dataset: str, version: str) -> list[dict[str, Any]]:
        lines = self.floe("read", dataset, "--version", version, "--limit", "1000", "--json")
        return [json.loads(line) for line in lines.splitlines()]


def copy_demo(root: Path) -> Night:
    shutil.copytree(DEMO, root, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".floe", "data"))
    night = Night(root)
    night.make_data()
    return night


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    """The demo after its first batch, on embedded Spark."""
    night = copy_demo(tmp_path_factory.mktemp("credit_risk"))
    try:
        report = json.loads(night.floe_alone("run", "--all", "--date", DAY, "--json"))
        assert report["ok"], report
        yield night
    finally:
        night.floe("spark", "stop")


def outputs(report: Any) -> dict[str, str]:
    return {
        output["dataset"]: output["tag"]
        for process in report["processes"]
        for output in (process["run"] or {"outputs": []})["outputs"]
    }


def test_the_batch_writes_every_dataset(night: Night) -> None:
    receipts = night.versions("reporting.large_exposures_receipt")
    assert receipts == {"2026-09-01.1": "READY"}
    large = night.read("reporting.large_exposures", "2026-09-01.1")
    assert len(large) == 9
    receipt = night.root / f"data/out/receipts/{DAY}/2026-09-01.1/receipt.json"
    assert [file["name"] for file in json.loads(receipt.read_text())["files"]] == [
        "large_exposures.csv"
    ]


def test_the_feed_has_a_manifest_and_a_stable_location(night: Night) -> None:
    latest = night.root / "data/out/large_exposures/latest"
    manifest = json.loads((latest / "manifest.json").read_text())
    assert manifest["files"][0]["rows"] == 9


def test_column_lineage_goes_back_to_the_feeds(night: Night) -> None:
    lineage = json.loads(night.floe("lineage", "credit.exposure", "--columns", "--json"))
    text = json.dumps(lineage)
    for column in ("credit.positions", "market.fx_rates", "credit.collateral"):
        assert column in text


def test_a_second_run_writes_second_versions_and_feeds_keep_theirs(night: Night) -> None:
    report = night.run_all()
    assert report["ok"]
    assert {tag.rpartition(".")[2] for tag in outputs(report).values()} == {"2"}
    assert not any(arrival["new"] for arrival in report["arrivals"])
    assert night.read("credit.exposure", "2026-09-01.2") == night.read(
        "credit.exposure", "2026-09-01.1"
    )


def test_a_corrupted_feed_is_rejected_with_the_reason_and_nothing_downstream_runs(
    night: Night,
) -> None:
    before = {name: night.versions(name) for name in ("credit.positions_eur", "credit.exposure")}
    night.make_data("--corrupt", f"fx:{DAY}")
    report = night.run_all(code=1)
    (rejected,) = [arrival for arrival in report["arrivals"] if arrival["state"] == "REJECTED"]
    assert rejected["dataset"] == "market.fx_rates"
    assert "sha256" in rejected["reason"]
    states = {outcome["process"]: outcome["state"] for outcome in report["processes"]}
    assert states["credit.positions_in_eur"] == states["credit.exposure_daily"] == "SKIPPED"
    assert {name: night.versions(name) for name in before} == before
    night.make_data()
    assert night.run_all()["ok"]


def test_a_run_for_an_older_date_does_not_move_the_stable_name(night: Night) -> None:
    latest = night.root / "data/out/large_exposures/latest"
    target = latest.resolve()
    report = night.run_all(DAY_BEFORE)
    assert report["ok"], report
    assert latest.resolve() == target
    assert night.versions("credit.exposure")[f"{DAY_BEFORE}.1"] == "READY"


def test_a_run_can_be_repeated_with_the_versions_that_it_read(night: Night) -> None:
    first = json.loads(night.floe("run", "credit.expected_loss_daily", "-d", DAY, "--json"))
    night.floe("run", "credit.exposure_daily", "-d", DAY, "--json")
    again = json.loads(
        night.floe(
            "run", "credit.expected_loss_daily", "-d", DAY, "--as", first["run_id"], "--json"
        )
    )
    old, new = first["outputs"][0]["tag"], again["outputs"][0]["tag"]
    assert old != new
    assert night.read("credit.expected_loss", old) == night.read("credit.expected_loss", new)


@pytest.mark.soak
def test_the_same_batch_runs_on_a_cluster(tmp_path: Path) -> None:
    night = copy_demo(tmp_path)
    with StandaloneCluster() as cluster:
        platform = (night.root / "platform.yaml").read_text()
        compute = f"compute: {{default: {{url: '{cluster.url}', memory: 1g}}}}\n"
        (night.root / "platform.yaml").write_text(platform + compute)
        try:
            report = night.run_all()
            assert report["ok"], report
            assert len(night.read("reporting.large_exposures", "2026-09-01.1")) == 9
        finally:
            night.floe("spark", "stop")


@pytest.mark.parametrize("folder", [".floe", "data"])
def test_git_ignores_what_a_batch_creates(folder: str) -> None:
    path = f"demo/credit_risk/{folder}/x"
    ignored = subprocess.run(
        ["git", "check-ignore", "-q", path], cwd=DEMO.parent.parent, check=False
    )
    assert ignored.returncode == 0
