"""`floe drift` and `floe catalog split`: decide on claims, and undo a join."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from floe import clock
from floe.catalog.database import open_catalog
from floe.catalog.datasets import create_dataset
from floe.catalog.migrate import upgrade_catalog
from floe.catalog.recording import Recorder, record_group
from floe.cli import app
from floe.events.ingest import read_claim
from tests.events.factory import LAKE, event, recently, written


def floe(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(autouse=True)
def claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two curated datasets that an event says are one."""
    url = f"sqlite:///{tmp_path / 'catalog.db'}"
    monkeypatch.setenv("FLOE_CATALOG_URL", url)
    monkeypatch.chdir(tmp_path)
    catalog = open_catalog(url)
    upgrade_catalog(catalog)
    with catalog.writing() as session:
        for name in ("credit.exposure", "credit.report"):
            create_dataset(session, LAKE, name, curated=True)
    linked = written("credit.report", symlink=(LAKE, "credit.exposure"))
    recorder = Recorder(catalog.store)
    claim = read_claim(event("COMPLETE", recently(0), outputs=[linked]))
    assert record_group(catalog, recorder, [claim], clock.now()) == {}
    recorder.close()
    catalog.close()


def test_a_claim_is_listed_accepted_and_undone() -> None:
    listed = json.loads(floe("drift", "--json"))
    (claim,) = listed["claims"]
    assert (claim["dataset"], claim["subject"]) == ("lake/credit.exposure", "lake/credit.report")
    assert "floe drift accept CLAIM" in floe("drift")
    assert floe("drift", "accept", "1") == "Both names now mean lake/credit.exposure.\n"
    assert floe("drift") == "No drift.\n"
    done = json.loads(floe("catalog", "split", "lake/credit.report", "--json"))
    assert done == {"dataset": "lake/credit.report", "split_from": "lake/credit.exposure"}


def test_a_dismissed_claim_is_listed_only_with_all() -> None:
    assert floe("drift", "dismiss", "1", "--comment", "a copy") == "Dismissed claim 1.\n"
    assert json.loads(floe("drift", "--json"))["claims"] == []
    (claim,) = json.loads(floe("drift", "--all", "--json"))["claims"]
    assert (claim["status"], claim["comment"]) == ("DISMISSED", "a copy")


def test_a_dataset_that_was_never_joined_cannot_be_split() -> None:
    result = CliRunner().invoke(app, ["catalog", "split", "lake/credit.report"])
    assert result.exit_code == 1
    assert "No join of a dataset named" in str(result.exception)


def test_a_decided_claim_cannot_be_decided_again() -> None:
    floe("drift", "dismiss", "1")
    result = CliRunner().invoke(app, ["drift", "dismiss", "1"])
    assert str(result.exception) == "Drift claim 1 is already DISMISSED."
    result = CliRunner().invoke(app, ["drift", "accept", "1"])
    assert str(result.exception) == (
        "Drift claim 1 is DISMISSED and cannot become ACCEPTED: DISMISSED is final."
    )
