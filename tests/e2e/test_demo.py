"""`make demo`: a day of the shop through Dagster, read from the catalog afterwards."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.orm import Session

from floe.catalog.lineage import find_node, walk_lineage
from floe.catalog.run_events import EventFilter, page_events
from floe.catalog.runs import describe_run, page_runs
from floe.cli.context import open_project_catalog
from floe.services.state import read_up
from floe.settings import ProjectPaths
from tests.e2e.conftest import Demo
from tests.e2e.shops import copy_shop, processes_of, start_demo
from tools.demo.showing import RunOutput, outputs_of_run

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]

LAYERS = ("customers", "orders", "products", "order_items")
BRONZE = {f"bronze.raw_{name}" for name in LAYERS}
SILVER = {f"silver.stg_{name}" for name in LAYERS}
GOLD = {"gold.customer_orders", "gold.revenue_by_product"}
MODELS = SILVER | GOLD


@pytest.fixture
def session(demo: Demo) -> Iterator[Session]:
    with open_project_catalog(demo.root) as catalog, catalog.reading() as session:
        yield session


@pytest.fixture
def dagster_run(session: Session) -> str:
    """The id of the only Dagster run."""
    (root,) = (run for run in page_runs(session, 100) if run.parent_run_uuid is None)
    return root.run_uuid


@pytest.fixture
def day(session: Session, dagster_run: str) -> dict[str, RunOutput]:
    return {written.asset: written for written in outputs_of_run(session, dagster_run)}


def sources(session: Session, dataset: str) -> set[str]:
    graph = walk_lineage(session, find_node(session, dataset), "upstream", 1, kind="datasets")
    return {node.name for node in graph.nodes if node.depth == 1}


def test_the_demo_without_a_terminal_succeeds_and_leaves_nothing_running(demo: Demo) -> None:
    assert demo.code == 0, demo.output
    assert demo.left == []


def test_the_demo_shows_its_results_in_80_columns(demo: Demo) -> None:
    for name in BRONZE | MODELS:
        assert name in demo.output
    assert "Checks: 11 of 11 passed" in demo.output
    assert "$ floe lineage gold.customer_orders" in demo.output
    assert "Dagster   http://127.0.0.1:" in demo.output
    assert "API       http://127.0.0.1:" in demo.output
    assert [line for line in demo.output.splitlines() if len(line) > 80] == []


def test_each_of_the_six_models_has_its_own_run_with_rows(day: dict[str, RunOutput]) -> None:
    assert set(day) >= BRONZE | MODELS
    assert len({day[name].run.run_uuid for name in MODELS}) == 6
    for name in BRONZE | MODELS:
        assert day[name].run.status == "SUCCESS"
        assert day[name].output.state == "READY"
        assert day[name].output.row_count


def test_each_run_has_its_start_and_its_end(session: Session, day: dict[str, RunOutput]) -> None:
    for name in BRONZE | MODELS:
        wanted = EventFilter(run_uuid=day[name].run.run_uuid)
        kinds = {event.event_type for event in page_events(session, wanted)}
        assert kinds == {"run.start", "run.complete"}, name


def test_all_runs_are_spans_of_one_trace(
    session: Session, day: dict[str, RunOutput], dagster_run: str
) -> None:
    root = describe_run(session, dagster_run).facets_json["trace"]
    spans = [
        describe_run(session, written.run.run_uuid).facets_json["trace"] for written in day.values()
    ]
    assert {span["traceId"] for span in spans} == {root["traceId"]}
    assert {span["parentSpanId"] for span in spans} == {root["spanId"]}
    assert len({span["spanId"] for span in spans}) == len(day)


def test_lineage_goes_from_bronze_through_each_silver_model_to_gold(session: Session) -> None:
    for name in LAYERS:
        assert sources(session, f"silver.stg_{name}") == {f"bronze.raw_{name}"}
    assert sources(session, "gold.customer_orders") == SILVER
    assert sources(session, "gold.revenue_by_product") == SILVER - {"silver.stg_customers"}


def test_each_dbt_test_is_a_check_result_of_the_version_it_tested(
    day: dict[str, RunOutput],
) -> None:
    checks = {name: written.checks for name, written in day.items() if written.checks}
    assert set(checks) == MODELS | {"gold.daily_revenue"}
    assert sum(map(len, checks.values())) == 11
    assert {verdict for results in checks.values() for _, verdict in results} == {"PASS"}


def test_a_failed_run_is_reported_with_its_reason_and_its_log(tmp_path: Path) -> None:
    shop = copy_shop(tmp_path / "shop")
    bronze = shop / "orchestration" / "assets" / "bronze.py"
    broken = bronze.read_text().replace(
        "    day = _day(context)\n", '    raise RuntimeError("no delivery today")\n', 1
    )
    bronze.write_text(broken)
    process = start_demo(shop)
    output, _ = process.communicate()
    assert process.returncode == 1, output
    assert "bronze__raw_customers: RuntimeError: no delivery today" in output
    log = output.partition("The log is")[2].split()[0]
    assert "no delivery today" in Path(log).read_text()
    assert processes_of(shop) == []


def test_an_interrupted_demo_leaves_nothing_running(tmp_path: Path) -> None:
    shop = copy_shop(tmp_path / "shop")
    process = start_demo(shop)
    try:
        wait_for_services(shop)
    finally:
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate()
    assert process.returncode == 130, output
    assert processes_of(shop) == []


def wait_for_services(shop: Path) -> None:
    """Wait until several processes have been started."""
    for _ in range(600):
        up = read_up(ProjectPaths(shop))
        if up is not None and sum(service.pid is not None for service in up.services) > 1:
            return
        time.sleep(0.1)
    pytest.fail("No services were started.")
