"""Running a process: inputs, outputs, failures, engines and write modes."""

from pathlib import Path
from typing import Any

import pytest

from floe.catalog.runs import describe_run, get_run, list_runs
from floe.execution.failures import ProcessFailedError
from floe.execution.input_deliveries import receive_for
from floe.execution.planning import InputsMissingError, UnknownParameterError
from floe.execution.versions.drafts import VersionRejectedError
from floe.execution.versions.schema_fit import ContractBrokenError
from tests.execution.workshop import (
    MONDAY,
    TOTAL_SQL,
    TOTALS,
    TRADES,
    TUESDAY,
    WEDNESDAY,
    OpenShop,
    Workshop,
)

pytestmark = [pytest.mark.java, pytest.mark.slow]


def receive(shop: OpenShop, day: Any = TUESDAY) -> Any:
    processes = shop.workspace.site.spec.processes.values()
    return receive_for(shop.workspace, shop.sparks, processes, day)


def test_a_run_creates_a_readable_version(shop: Workshop) -> None:
    with shop.open() as project:
        receive(project)
        result = project.run("totals")
        (output,) = result.outputs
        assert (output.dataset, output.tag, output.rows) == ("risk.totals", "2026-09-01.1", 1)
        assert project.rows("risk.totals", "2026-09-01.1") == [(2, 15.5)]
        assert project.main("risk.totals") == [(2, 15.5)]


def test_a_run_is_recorded_with_its_inputs_steps_and_log(shop: Workshop) -> None:
    with shop.open() as project:
        receive(project)
        result = project.run("totals")
        with project.workspace.catalog.reading() as session:
            run = get_run(session, result.run_id)
            assert (run.status, run.business_date) == ("SUCCESS", TUESDAY)
            detail = describe_run(session, run.run_uuid)
            (read,) = detail.inputs
            assert (read.full_name, read.version_tag) == ("lake/raw.trades", "2026-09-01.1")
            steps = {step.step_name: step for step in detail.steps}
            assert list(steps) == ["write totals", "check totals", "publish totals"]
            assert steps["write totals"].row_count == 1
            facets: Any = run.facets_json
            assert facets["floe"]["rowsIn"] == 2
            assert run.log_location is not None
        log = project.workspace.site.root / run.log_location
        assert "version 2026-09-01.1 is ready" in log.read_text()


def test_a_second_run_creates_the_next_version_and_supersedes_the_first(shop: Workshop) -> None:
    with shop.open() as project:
        receive(project)
        project.run("totals")
        project.run("totals")
        assert project.states("risk.totals") == {
            "2026-09-01.1": "SUPERSEDED",
            "2026-09-01.2": "READY",
        }


def test_the_same_run_id_twice_writes_once(shop: Workshop) -> None:
    run_id = "11111111-2222-4333-8444-555555555555"
    with shop.open() as project:
        receive(project)
        project.run("totals", how={"run_id": run_id})
        again = project.run("totals", how={"run_id": run_id})
        assert again.repeated
        assert list(project.states("risk.totals")) == ["2026-09-01.1"]


def test_a_rerun_for_an_older_date_does_not_move_the_stable_name(shop: Workshop) -> None:
    shop.deliver(MONDAY, (1, 1.0))
    with shop.open() as project:
        for day in (MONDAY, TUESDAY):
            receive(project, day)
            project.run("totals", day)
        project.run("totals", MONDAY)
        assert project.main("risk.totals") == [(2, 15.5)]
        assert project.rows("risk.totals", "2026-08-31.2") == [(1, 1.0)]
        assert project.rows("risk.totals", "2026-08-31.1") == [(1, 1.0)]


def test_a_run_can_read_the_same_versions_as_another_run(shop: Workshop) -> None:
    with shop.open() as project:
        receive(project)
        first = project.run("totals")
        shop.deliver(TUESDAY, (1, 10.0), (2, 5.5), (3, 100.0))
        # The files that the first version listed are gone, so it is kept as a copy.
    with shop.open() as project:
        receive(project)
        assert project.states("raw.trades")["2026-09-01.2"] == "READY"
        with pytest.raises(Exception, match=r"2026-09-01\.1 of 'raw\.trades' cannot be read"):
            project.run("totals", as_run=first.run_id)


def test_missing_inputs_are_named_with_their_writers(shop: Workshop) -> None:
    with shop.open() as project, pytest.raises(InputsMissingError) as caught:
        project.run("totals", WEDNESDAY)
    assert str(caught.value) == (
        "'totals' cannot run for 2026-09-02: 'raw.trades' has no READY version for 2026-09-02 "
        "(delivered by another system)."
    )


def test_an_unchanged_delivery_keeps_its_version(shop: Workshop) -> None:
    with shop.open() as project:
        (first,) = receive(project)
        (second,) = receive(project)
        assert (first.new, second.new) == (True, False)
        assert list(project.states("raw.trades")) == ["2026-09-01.1"]


def test_parameters_are_bound_and_checked(shop: Workshop) -> None:
    shop.declare(
        {"raw.trades": TRADES, "risk.big": TRADES | {"format": "iceberg", "location": None}},
        {"big": {"inputs": {"trades": "raw.trades"}, "outputs": {"big": "risk.big"},
                 "sql": "select * from trades where amount > :least", "params": {"least": 7}}},
    )  # fmt: skip
    with shop.open() as project:
        receive(project)
        project.run("big")
        assert project.rows("risk.big", "2026-09-01.1") == [(1, 10.0)]
        project.run("big", params={"least": "3"})
        assert len(project.rows("risk.big", "2026-09-01.2")) == 2
        with pytest.raises(UnknownParameterError, match="Did you mean 'least'"):
            project.run("big", params={"leats": "3"})


def test_a_failed_check_rejects_the_version_and_readers_keep_the_previous_one(
    shop: Workshop,
) -> None:
    checked = TOTALS | {"checks": [{"kind": "range", "column": "amount", "max": 100}]}
    shop.declare(
        {"raw.trades": TRADES, "risk.totals": checked},
        {"totals": {"inputs": {"trades": "raw.trades"}, "outputs": {"totals": "risk.totals"},
                    "sql": TOTAL_SQL}},
    )  # fmt: skip
    with shop.open() as project:
        receive(project)
        project.run("totals")
        shop.deliver(TUESDAY, (1, 1000.0))
        receive(project)
        with pytest.raises(VersionRejectedError, match="range_amount: 1 row violates the check"):
            project.run("totals")
        assert project.states("risk.totals") == {
            "2026-09-01.1": "READY",
            "2026-09-01.2": "REJECTED",
        }
        assert project.main("risk.totals") == [(2, 15.5)]


def test_an_output_that_breaks_its_schema_is_rejected_with_the_difference(shop: Workshop) -> None:
    shop.declare(
        {"raw.trades": TRADES, "risk.totals": TOTALS},
        {"totals": {"inputs": {"trades": "raw.trades"}, "outputs": {"totals": "risk.totals"},
                    "sql": "select 'many' as trades from trades"}},
    )  # fmt: skip
    with shop.open() as project:
        receive(project)
        with pytest.raises(ContractBrokenError) as caught:
            project.run("totals")
        assert caught.value.problems == (
            "column 'trades' is string instead of bigint",
            "column 'amount' (double) is missing",
        )
        assert project.states("risk.totals") == {"2026-09-01.1": "REJECTED"}


def test_bad_sql_fails_immediately_without_a_retry(shop: Workshop) -> None:
    shop.declare(
        {"raw.trades": TRADES, "risk.totals": TOTALS},
        {"totals": {"inputs": {"trades": "raw.trades"}, "outputs": {"totals": "risk.totals"},
                    "sql": "select nothing from trades"}},
    )  # fmt: skip
    with shop.open() as project:
        receive(project)
        with pytest.raises(ProcessFailedError, match="UNRESOLVED_COLUMN"):
            project.run("totals")
        assert project.states("risk.totals") == {"2026-09-01.1": "ABANDONED"}
        with project.workspace.catalog.reading() as session:
            (run,) = list_runs(session)
            assert (run.status, run.attempt) == ("FAILED", 1)


def test_steps_read_each_other_and_their_rows_are_counted(shop: Workshop) -> None:
    steps = [
        {"name": "large", "sql": "select * from trades where amount > 6"},
        {
            "name": "totals",
            "sql": "select count(*) as trades, sum(l.amount) as amount "
            "from large as l join trades as t using (id)",
        },
    ]
    shop.declare(
        {"raw.trades": TRADES, "risk.totals": TOTALS},
        {"totals": {"inputs": {"trades": "raw.trades"}, "outputs": {"totals": "risk.totals"},
                    "steps": steps}},
    )  # fmt: skip
    with shop.open() as project:
        receive(project)
        result = project.run("totals")
        assert project.rows("risk.totals", "2026-09-01.1") == [(1, 10.0)]
        with project.workspace.catalog.reading() as session:
            recorded = describe_run(session, result.run_id).steps
        graph = {step.step_name: (step.depends_on_json, step.row_count) for step in recorded}
        assert graph["large"] == (["trades"], 1)
        assert graph["totals"][0] == ["trades", "large"]


def test_spark_and_pandas_functions_create_outputs(shop: Workshop) -> None:
    shop.write(
        "def spark_total(trades, least):\n"
        "    return trades.where(trades.amount > least).selectExpr(\n"
        "        'count(*) as trades', 'sum(amount) as amount')\n"
        "def pandas_total(trades):\n"
        "    import pandas as pd\n"
        "    return pd.DataFrame({'trades': [len(trades)], 'amount': [trades.amount.sum()]})\n",
        "shop_functions.py",
    )
    inputs = {"trades": "raw.trades"}
    shop.declare(
        {"raw.trades": TRADES, "risk.a": TOTALS, "risk.b": TOTALS},
        {
            "a": {"inputs": inputs, "outputs": {"a": "risk.a"}, "params": {"least": 6},
                  "function": "shop_functions.spark_total"},
            "b": {"inputs": inputs, "outputs": {"b": "risk.b"}, "engine": "python",
                  "function": "shop_functions.pandas_total"},
        },
    )  # fmt: skip
    with shop.open() as project:
        receive(project)
        project.run("a")
        project.run("b")
        assert project.rows("risk.a", "2026-09-01.1") == [(1, 10.0)]
        assert project.rows("risk.b", "2026-09-01.1") == [(2, 15.5)]


def test_a_command_gets_files_and_reports_what_it_wrote(shop: Workshop) -> None:
    shop.write(
        "import csv, json, os\n"
        "run = json.load(open(os.environ['FLOE_RUN_FILE']))\n"
        "assert run['params'] == {'factor': 2} and os.environ['FLOE_PARAM_FACTOR'] == '2'\n"
        "rows = list(csv.DictReader(open(run['inputs']['trades']['files'][0])))\n"
        "total = sum(float(row['amount']) for row in rows) * 2\n"
        "target = os.environ['FLOE_OUTPUT_TOTALS'] + '/out.csv'\n"
        "open(target, 'w').write(f'trades,amount\\n{len(rows)},{total}\\n')\n"
        "report = {'outputs': {'totals': {'path': target, 'format': 'csv'}}}\n"
        "json.dump(report, open(os.environ['FLOE_REPORT_FILE'], 'w'))\n"
        "print('added up')\n",
        "add_up.py",
    )
    totals = {
        "schema": [{"name": "trades", "type": "bigint"}, {"name": "amount", "type": "double"}]
    }
    shop.declare(
        {"raw.trades": TRADES, "risk.totals": totals},
        {"totals": {"inputs": {"trades": "raw.trades"}, "outputs": {"totals": "risk.totals"},
                    "command": ["python", "add_up.py"], "params": {"factor": 2}}},
    )  # fmt: skip
    with shop.open() as project:
        receive(project)
        result = project.run("totals")
        assert project.rows("risk.totals", "2026-09-01.1") == [(2, 31.0)]
        assert "added up" in Path(result.log).read_text()


def test_a_failed_command_reports_its_exit_code_and_last_lines(shop: Workshop) -> None:
    shop.declare(
        {"raw.trades": TRADES, "risk.totals": TOTALS},
        {"totals": {"inputs": {"trades": "raw.trades"}, "outputs": {"totals": "risk.totals"},
                    "command": ["sh", "-c", "echo no disk left; exit 3"]}},
    )  # fmt: skip
    with shop.open() as project:
        receive(project)
        with pytest.raises(Exception, match=r"ended with exit code 3\.\n  no disk left"):
            project.run("totals")
        assert project.states("risk.totals") == {"2026-09-01.1": "ABANDONED"}


def test_a_timeout_stops_the_command_and_its_child_processes(shop: Workshop) -> None:
    shop.declare(
        {"raw.trades": TRADES, "risk.totals": TOTALS},
        {"totals": {"inputs": {"trades": "raw.trades"}, "outputs": {"totals": "risk.totals"},
                    "command": ["sh", "-c", "sleep 300"], "timeout": "2s",
                    "retry": {"max_attempts": 1}}},
    )  # fmt: skip
    with shop.open() as project:
        receive(project)
        with pytest.raises(Exception, match="was stopped after its timeout of 0:00:02"):
            project.run("totals")


@pytest.mark.parametrize("mode", ["append", "merge", "overwrite_partition"])
def test_write_modes_work_as_documented(shop: Workshop, mode: str) -> None:
    columns = [
        {"name": "day", "type": "date"},
        {"name": "id", "type": "bigint"},
        {"name": "amount", "type": "double"},
    ]
    kept = {"schema": columns, "keys": ["day", "id"], "partition_column": "day"}
    shop.declare(
        {"raw.trades": TRADES, "risk.kept": kept},
        {"keep": {"inputs": {"trades": "raw.trades"},
                  "outputs": {"kept": {"dataset": "risk.kept", "write": mode}},
                  "sql": "select :business_date as day, id, amount from trades"}},
    )  # fmt: skip
    shop.deliver(MONDAY, (1, 1.0))
    with shop.open() as project:
        for day in (MONDAY, TUESDAY, MONDAY):
            receive(project, day)
            project.run("keep", day)
        monday = [(MONDAY, 1, 1.0)]
        tuesday = [(TUESDAY, 1, 10.0), (TUESDAY, 2, 5.5)]
        twice = monday if mode == "append" else []
        assert project.main("risk.kept") == sorted([*monday, *twice, *tuesday])
        if mode == "overwrite_partition":
            assert project.rows("risk.kept", "2026-09-01.1") == tuesday
            assert project.rows("risk.kept", "2026-08-31.2") == monday


def test_published_outputs_stay_when_a_later_output_fails(shop: Workshop) -> None:
    feed = {"format": "csv", "location": "out/{dataset}/{version}", "schema": TRADES["schema"]}
    steps = [{"name": name, "sql": "select * from trades"} for name in ("a", "b")]
    shop.declare(
        {
            "raw.trades": TRADES,
            "out.a": feed | {"feed": {"latest": "out/latest_a"}},
            "out.b": feed | {"feed": {"latest": "out/latest_b"}},
        },
        {"copy": {"inputs": {"trades": "raw.trades"}, "outputs": {"a": "out.a", "b": "out.b"},
                  "steps": steps, "retry": {"max_attempts": 1}}},
    )  # fmt: skip
    in_the_way = shop.root / "out" / "latest_b"
    in_the_way.mkdir(parents=True)
    (in_the_way / "somebody's.txt").write_text("not floe's")
    with shop.open() as project:
        receive(project)
        with pytest.raises(Exception, match="latest_b"):
            project.run("copy")
        assert project.states("out.a") == {"2026-09-01.1": "READY"}
        assert len(project.rows("out.a", "2026-09-01.1")) == 2
        assert project.states("out.b") == {"2026-09-01.1": "PUBLISHING"}


def test_rows_of_another_partition_reject_the_version(shop: Workshop) -> None:
    columns = [{"name": "day", "type": "date"}, {"name": "id", "type": "bigint"}]
    shop.declare(
        {"raw.trades": TRADES, "risk.kept": {"schema": columns, "partition_column": "day"}},
        {"keep": {"inputs": {"trades": "raw.trades"},
                  "outputs": {"kept": {"dataset": "risk.kept", "write": "overwrite_partition"}},
                  "sql": "select case id when 1 then :business_date else date'2020-01-01' end "
                         "as day, id from trades"}},
    )  # fmt: skip
    with shop.open() as project:
        receive(project)
        with pytest.raises(VersionRejectedError, match="2 rows were written, but 1 were read back"):
            project.run("keep")
        assert project.main("risk.kept") == []


def test_a_rejected_delivery_is_checked_again_when_the_rules_change(shop: Workshop) -> None:
    def declare(most: int) -> None:
        check = {"kind": "range", "column": "amount", "max": most}
        shop.declare(
            {"raw.trades": TRADES | {"checks": [check]}, "risk.totals": TOTALS},
            {"totals": {"inputs": {"trades": "raw.trades"}, "outputs": {"totals": "risk.totals"},
                        "sql": TOTAL_SQL}},
        )  # fmt: skip

    declare(1)
    with shop.open() as project:
        assert [arrival.state for arrival in receive(project)] == ["REJECTED"]
        assert [(arrival.state, arrival.new) for arrival in receive(project)] == [
            ("REJECTED", False)
        ]
    declare(100)
    with shop.open() as project:
        assert [(arrival.state, arrival.tag) for arrival in receive(project)] == [
            ("READY", "2026-09-01.2")
        ]
