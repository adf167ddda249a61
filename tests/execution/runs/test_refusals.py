"""Outputs that a run rejects, and how commands show them afterwards."""

import json
from typing import Any

import pytest

from floe.catalog.checks import page_results
from floe.execution.formats.contract import DuplicateKeysError
from floe.execution.input_deliveries import receive_for
from floe.execution.version_checks import check_version
from floe.execution.versions.schema_fit import ContractBrokenError
from tests.execution.workshop import TOTALS, TRADES, TUESDAY, Workshop

pytestmark = [pytest.mark.java, pytest.mark.slow]


def declare(shop: Workshop, dataset: dict[str, Any], output: dict[str, Any], sql: str) -> None:
    process = {"inputs": {"trades": "raw.trades"}, "outputs": {"out": output}, "sql": sql}
    shop.declare({"raw.trades": TRADES, "risk.out": dataset}, {"make": process})


def test_a_broken_schema_is_recorded_and_shown_by_commands(shop: Workshop) -> None:
    declare(shop, TOTALS, {"dataset": "risk.out"}, "select 'many' as trades from trades")
    with shop.open() as project:
        specs = project.workspace.site.spec.processes.values()
        receive_for(project.workspace, project.sparks, specs, TUESDAY)
        with pytest.raises(ContractBrokenError):
            project.run("make")
        (version,) = project.versions("risk.out")
        with project.workspace.catalog.reading() as session:
            (result,) = page_results(
                session, version.dataset_id, dataset_version_id=version.dataset_version_id
            )
        assert (result.name, result.status) == ("contract", "FAIL")
        with project.sparks.session() as spark:
            checked = check_version(project.workspace, spark, "risk.out", version.version_tag)
        assert (checked.ok, checked.recalled) == (False, True)
        assert checked.audited is not None
        (verdict,) = checked.audited.verdicts
        assert "column 'amount' (double) is missing" in verdict.message
    listed = json.loads(shop.floe("versions", "risk.out", "--json").stdout)
    assert "column 'amount'" in listed["versions"][0]["reason"]


def test_new_rows_with_the_same_keys_are_not_merged(shop: Workshop) -> None:
    output = {"dataset": "risk.out", "write": "merge"}
    declare(shop, {"keys": ["id"]}, output, "select id, amount from trades")
    shop.deliver(TUESDAY, (1, 10.0), (2, 5.0), (2, 6.0), (3, 1.0))
    with shop.open() as project:
        specs = project.workspace.site.spec.processes.values()
        receive_for(project.workspace, project.sparks, specs, TUESDAY)
        with pytest.raises(DuplicateKeysError, match=r"id = 2 \(2 rows\)\. Make"):
            project.run("make")
        assert project.states("risk.out") == {"2026-09-01.1": "ABANDONED"}
        shop.deliver(TUESDAY, (1, 10.0), (2, 5.0))
        receive_for(project.workspace, project.sparks, specs, TUESDAY)
        project.run("make")
        assert project.main("risk.out") == [(1, 10.0), (2, 5.0)]
