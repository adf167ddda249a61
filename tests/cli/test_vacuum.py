"""`floe vacuum`, `floe retract` and `floe read`, without Spark."""

import json
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from floe import clock
from floe.catalog import Catalog
from floe.catalog.audit import list_audit
from floe.catalog.version_queries import get_version_of
from floe.catalog.versions import reserve_version
from floe.cli import app
from floe.errors import FloeError
from floe.execution.maintenance import vacuum
from floe.execution.versions.previews import Preview
from floe.execution.workspace import Workspace, load_site, open_workspace
from floe.settings import find_project

DAY = date(2026, 9, 7)
NAME = "credit.exposure"
FLOE_YAML = """
name: risk
datasets:
  credit.exposure:
    format: parquet
    location: out
  credit.held:
    format: parquet
    legal_hold: {reason: case 12}
processes:
  credit.make:
    sql: select 1 as id
    outputs: {exposure: credit.exposure}
"""


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A project whose dataset has one superseded version with data, and one that is READY."""
    (tmp_path / "floe.yaml").write_text(FLOE_YAML)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("FLOE_CATALOG_URL", raising=False)
    with open_workspace(load_site(find_project())) as workspace:
        for number in (1, 2):
            folder = tmp_path / "out" / f"{DAY}.{number}"
            folder.mkdir(parents=True)
            (folder / "part.parquet").write_bytes(b"1234567")
            add(workspace.catalog, workspace.dataset_id(NAME), str(folder))
        yield workspace


def add(catalog: Catalog, dataset_id: int, path: str) -> None:
    note: dict[str, Any] = {"floe": {"mode": "replace"}}
    with catalog.writing() as session:
        version = reserve_version(
            session, dataset_id, DAY, state="READY", path=path, metadata_json=note
        )
        version.produced_at = clock.now() - timedelta(days=40)


def floe(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, catch_exceptions=False)


def test_a_dry_run_lists_versions_and_removes_nothing(tmp_path: Path) -> None:
    done = floe("vacuum", "--dry-run")
    assert done.exit_code == 0
    assert "Would be removed" in done.stdout
    assert f"{DAY}.1" in done.stdout
    assert f"{DAY}.2" not in done.stdout
    assert "legal hold: case 12" in done.stdout
    assert "Would free 7 bytes." in done.stdout
    assert (tmp_path / "out" / f"{DAY}.1").is_dir()


def test_scripts_and_jobs_get_the_same_answer(tmp_path: Path) -> None:
    answer = json.loads(floe("vacuum", NAME, "--dry-run", "--json").stdout)
    (item,) = answer["items"]
    assert (item["kind"], item["name"], item["bytes"]) == ("version", f"{DAY}.1", 7)
    assert item["reason"] == "SUPERSEDED, older than 30d"
    assert vacuum(project=str(tmp_path), dataset=NAME, dry_run=True) == answer


def test_retain_overrides_the_declared_retention() -> None:
    assert "Nothing is past its retention." in floe("vacuum", NAME, "--retain", "50d").stdout


def test_an_invalid_duration_or_dataset_is_refused() -> None:
    with pytest.raises(FloeError, match="is not a duration") as raised:
        floe("vacuum", "--retain", "a month")
    assert raised.value.exit_code == 2
    with pytest.raises(FloeError, match=r"Did you mean 'credit\.exposure'"):
        floe("vacuum", "credit.exposur")


def test_a_dataset_in_use_is_skipped(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("floe.execution.maintenance.sweep.MAX_WAIT", timedelta(0))
    with workspace.leases.hold(f"table/lake/{NAME}", wait=None):
        done = floe("vacuum", NAME, "--dry-run")
        assert done.exit_code == 1
        assert f"Skipped {NAME}: " in done.stdout
        assert floe("vacuum", "--dry-run").exit_code == 0


def test_a_superseded_version_is_retracted_with_a_reason_and_a_name(workspace: Workspace) -> None:
    done = floe("retract", NAME, f"{DAY}.1", "--reason", "wrong prices")
    assert done.stdout == f"Version {DAY}.1 of {NAME} is retracted.\n"
    with workspace.catalog.reading() as session:
        version = get_version_of(session, workspace.dataset_id(NAME), f"{DAY}.1")
        assert version.state == "RETRACTED"
        assert list_audit(session)[0].reason == "wrong prices"
    with pytest.raises(FloeError, match=rf"Version {DAY}\.1 .* was retracted on .*: wrong prices"):
        floe("read", NAME, "--version", f"{DAY}.1")
    again = rf"Version {DAY}\.1 .* was already retracted on .* by .*: wrong prices"
    with pytest.raises(FloeError, match=again):
        floe("retract", NAME, f"{DAY}.1", "--reason", "once more")


def test_a_retraction_needs_a_reason() -> None:
    assert floe("retract", NAME, f"{DAY}.1").exit_code == 2


def preview(monkeypatch: pytest.MonkeyPatch, *rows: dict[str, Any]) -> None:
    columns = tuple(rows[0]) if rows else ("id",)
    lines = [json.dumps(row) for row in rows]
    found = Preview(NAME, f"{DAY}.2", "READY", columns, lines, 1000)
    monkeypatch.setattr(
        "floe.execution.versions.previews.preview_version", lambda *_args, **_named: found
    )


def test_rows_are_shown_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    preview(monkeypatch, {"id": 1234567, "rate": 0.10, "name": None})
    printed = floe("read", NAME).stdout
    assert "1234567" in printed
    assert "1 of 1,000 rows." in printed
    assert json.loads(floe("read", NAME, "--json").stdout)["id"] == 1234567


def test_wide_rows_are_shown_one_below_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    preview(monkeypatch, {f"column_{number}": number for number in range(40)})
    printed = floe("read", NAME).stdout
    assert f"{NAME} {DAY}.2, row 1" in printed
    assert "column_39" in printed


def test_a_version_without_rows_prints_that(monkeypatch: pytest.MonkeyPatch) -> None:
    preview(monkeypatch)
    assert floe("read", NAME).stdout == f"{NAME} {DAY}.2 has no rows.\n"
