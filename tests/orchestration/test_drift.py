"""A definition that no longer has what was made for it is told of before anything runs."""

import logging
from pathlib import Path

import pytest
from dagster import AssetMaterialization, DagsterInstance
from typer.testing import CliRunner

from floe.cli import app
from floe.orchestration.drift import partition_drift
from floe.orchestration.instances import open_instance
from floe.orchestration.loading import load
from tests.orchestration.projects import load_parts, make_project

pytestmark = pytest.mark.slow

ASSETS = "from dagster import asset\n\n@asset(key_prefix='bronze')\ndef orders() -> None: ...\n"


def project(folder: Path, partitions: str, setting: str = "{partitions: p}") -> Path:
    floe_yaml = f"""
        orchestration:
          asset_modules: [mine]
          partitions: {{p: {partitions}}}
          assets: {{bronze.orders: {setting}}}
    """
    return make_project(folder, floe_yaml, {"mine.py": ASSETS})


def make(instance: DagsterInstance, *keys: str) -> None:
    for key in keys:
        made = AssetMaterialization(["bronze", "orders"], partition=key)
        instance.report_runless_asset_event(made)


SEPTEMBER = "{type: time_window, start: 2026-09-01}"
LATER = "{type: time_window, start: 2026-09-03}"


def test_what_is_still_a_key_is_no_drift(tmp_path: Path) -> None:
    with DagsterInstance.ephemeral() as instance:
        make(instance, "2026-09-03", "2026-09-04")
        assert partition_drift(instance, load_parts(project(tmp_path, LATER))) == []


@pytest.mark.parametrize(
    ("partitions", "setting", "said"),
    [
        (
            LATER,
            "{partitions: p}",
            "'bronze.orders' has other partitions now: 2 of 3 that were made are no keys of it "
            "(2026-09-01, 2026-09-02).",
        ),
        (
            "{type: static, partition_keys: [EMEA]}",
            "{partitions: p}",
            "3 of 3 that were made are no keys of it (2026-09-01, 2026-09-02, 2026-09-03).",
        ),
        (SEPTEMBER, "{group_name: raw}", "'bronze.orders' has no partitions any more: 3 of 3"),
        ("{type: dynamic}", "{partitions: p}", "'bronze.orders' has other partitions now: 2 of 3"),
    ],
    ids=["later start", "another kind", "none", "dynamic"],
)
def test_what_is_no_key_any_more_is_told(
    tmp_path: Path, partitions: str, setting: str, said: str
) -> None:
    with DagsterInstance.ephemeral() as instance:
        make(instance, "2026-09-01", "2026-09-02", "2026-09-03")
        instance.add_dynamic_partitions("p", ["2026-09-01"])
        (sentence,) = partition_drift(instance, load_parts(project(tmp_path, partitions, setting)))
        assert said in sentence


def test_drift_is_logged_at_load_until_it_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    project(tmp_path, SEPTEMBER)
    with open_instance(load(tmp_path).site) as instance:
        make(instance, "2026-09-01", "2026-09-03")
    project(tmp_path, LATER)
    floe = ["partitions", "check", "--project", str(tmp_path)]
    checked = CliRunner().invoke(app, floe)
    assert checked.exit_code == 1
    assert "1 of 2 that were made are no keys of it (2026-09-01)" in checked.output

    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / ".floe/dagster"))
    with caplog.at_level(logging.WARNING, "floe"):
        load_parts(tmp_path)
        load_parts(tmp_path)
        assert [record.getMessage() for record in caplog.records] == [checked.output.strip()] * 2
        caplog.clear()
        project(tmp_path, SEPTEMBER)
        load_parts(tmp_path)
        assert caplog.records == []
    assert CliRunner().invoke(app, floe).exit_code == 0
