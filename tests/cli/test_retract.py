"""`floe retract` lists the versions built on the retracted one, with their owners."""

import json

import pytest

from floe.catalog.runs import SUCCESS
from tests.execution.test_process_status import deliver, make, run, shop
from tests.execution.workshop import Workshop

__all__ = ["shop"]


@pytest.fixture
def chain(shop: Workshop) -> Workshop:
    """Trades were read by totals, and totals by a report."""
    with shop.open() as project:
        deliver(project, "raw.trades")
        make(project, "risk.totals", run(project, "totals", SUCCESS, trades="2026-09-01.1"))
        make(project, "risk.report", run(project, "report", SUCCESS, totals="2026-09-01.1"))
    return shop


def test_a_retraction_lists_the_versions_built_on_it(chain: Workshop) -> None:
    chain.environ["COLUMNS"] = "80"
    said = chain.floe("retract", "raw.trades", "2026-09-01.1", "--reason", "wrong feed").stdout
    assert "Version 2026-09-01.1 of raw.trades is retracted." in said
    assert "risk.totals" in said
    assert "risk.report" in said
    assert max(map(len, said.splitlines())) <= 80


def test_json_lists_derived_versions_with_owner_and_run(chain: Workshop) -> None:
    words = ("retract", "raw.trades", "2026-09-01.1", "--reason", "wrong feed", "--json")
    built = json.loads(chain.floe(*words).stdout)["built_on"]
    assert [(one["name"], one["depth"], one["state"]) for one in built] == [
        ("risk.totals", 1, "READY"),
        ("risk.report", 2, "READY"),
    ]
    assert all(one["run_uuid"] and "owner_team" in one for one in built)
