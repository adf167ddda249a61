"""`make demo`: a day of the shop through Dagster, as the catalog knows it when all is down."""

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
from tools.demo.showing import Made, made_in

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
    """The id of the only run that Dagster made."""
    (found,) = (run for run in page_runs(session, 100) if run.parent_run_uuid is None)
    return found.run_uuid


@pytest.fixture
def day(session: Session, dagster_run: str) -> dict[str, Made]:
    return {one.asset: one for one in made_in(session, dagster_run)}


def sources(session: Session, dataset: str) -> set[str]:
    found = walk_lineage(session, find_node(session, dataset), "upstream", 1, kind="datasets")
    return {node.name for node in found.nodes if node.depth == 1}


def test_demo_without_a_terminal_ends_well_and_leaves_nothing_running(demo: Demo) -> None:
    assert demo.code == 0, demo.said
    assert demo.left == []


def test_demo_says_what_it_made_on_a_screen_of_80_columns(demo: Demo) -> None:
    for name in BRONZE | MODELS:
        assert name in demo.said
    assert "Checks: 11 of 11 passed" in demo.said
    assert "$ floe lineage gold.customer_orders" in demo.said
    assert "Dagster   http://127.0.0.1:" in demo.said
    assert "API       http://127.0.0.1:" in demo.said
    assert [line for line in demo.said.splitlines() if len(line) > 80] == []


def test_each_of_the_six_models_has_its_own_run_with_rows(day: dict[str, Made]) -> None:
    assert set(day) >= BRONZE | MODELS
    assert len({day[name].run.run_uuid for name in MODELS}) == 6
    for name in BRONZE | MODELS:
        assert day[name].run.status == "SUCCESS"
        assert day[name].output.state == "READY"
        assert day[name].output.row_count


def test_each_run_has_its_start_and_its_end(session: Session, day: dict[str, Made]) -> None:
    for name in BRONZE | MODELS:
        wanted = EventFilter(run_uuid=day[name].run.run_uuid)
        kinds = {event.event_type for event in page_events(session, wanted)}
        assert kinds == {"run.start", "run.complete"}, name


def test_all_runs_are_spans_of_one_trace(
    session: Session, day: dict[str, Made], dagster_run: str
) -> None:
    root = describe_run(session, dagster_run).facets_json["trace"]
    spans = [describe_run(session, one.run.run_uuid).facets_json["trace"] for one in day.values()]
    assert {span["traceId"] for span in spans} == {root["traceId"]}
    assert {span["parentSpanId"] for span in spans} == {root["spanId"]}
    assert len({span["spanId"] for span in spans}) == len(day)


def test_lineage_leads_from_bronze_through_each_silver_model_to_gold(session: Session) -> None:
    for name in LAYERS:
        assert sources(session, f"silver.stg_{name}") == {f"bronze.raw_{name}"}
    assert sources(session, "gold.customer_orders") == SILVER
    assert sources(session, "gold.revenue_by_product") == SILVER - {"silver.stg_customers"}


def test_each_test_of_dbt_is_a_verdict_on_the_version_that_it_saw(day: dict[str, Made]) -> None:
    checks = {name: one.checks for name, one in day.items() if one.checks}
    assert set(checks) == MODELS | {"gold.daily_revenue"}
    assert sum(map(len, checks.values())) == 11
    assert {verdict for one in checks.values() for _, verdict in one} == {"PASS"}


def test_run_that_fails_is_said_with_its_reason_and_its_log(tmp_path: Path) -> None:
    shop = copy_shop(tmp_path / "shop")
    bronze = shop / "orchestration" / "assets" / "bronze.py"
    broken = bronze.read_text().replace(
        "    day = _day(context)\n", '    raise RuntimeError("no delivery today")\n', 1
    )
    bronze.write_text(broken)
    process = start_demo(shop)
    said, _ = process.communicate()
    assert process.returncode == 1, said
    assert "bronze__raw_customers: RuntimeError: no delivery today" in said
    log = said.partition("The log is")[2].split()[0]
    assert "no delivery today" in Path(log).read_text()
    assert processes_of(shop) == []


def test_interrupted_demo_leaves_nothing_behind(tmp_path: Path) -> None:
    shop = copy_shop(tmp_path / "shop")
    process = start_demo(shop)
    try:
        wait_for_services(shop)
    finally:
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate()
    assert process.returncode == 130, said
    assert processes_of(shop) == []


def wait_for_services(shop: Path) -> None:
    """Wait until several processes have been started, and none is ready."""
    for _ in range(600):
        found = read_up(ProjectPaths(shop))
        if found is not None and sum(one.pid is not None for one in found.services) > 1:
            return
        time.sleep(0.1)
    pytest.fail("Nothing was started.")
