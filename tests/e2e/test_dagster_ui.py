"""The shop in Dagster's web interface, in a real browser, after the demo's day."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.browsers import open_page
from tests.e2e.conftest import Demo

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]

FLOE = (sys.executable, "-m", "floe.cli")
SILVER = ("stg_customers", "stg_orders", "stg_products", "stg_order_items")
CHECKS = {
    "stg_customers": 2,
    "stg_orders": 2,
    "stg_products": 2,
    "stg_order_items": 1,
    "customer_orders": 2,
    "revenue_by_product": 1,
}
LOADS = 60_000
"""Milliseconds to load a page on a busy machine."""


@pytest.fixture(scope="module")
def dagster(demo: Demo) -> Iterator[str]:
    """The address of Dagster, which is restarted with its stored state."""
    up = (*FLOE, "up", "--detach", "--only", "dagster", "--dagster-port", "0")
    try:
        subprocess.run(up, cwd=demo.root, check=True)
        status = (*FLOE, "status", "--json")
        output = subprocess.run(status, cwd=demo.root, check=True, capture_output=True).stdout
        services = {service["service"]: service for service in json.loads(output)["services"]}
        yield services["web"]["address"]
    finally:
        subprocess.run((*FLOE, "down"), cwd=demo.root, check=True)


@pytest.fixture(scope="module")
def page(demo: Demo, dagster: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A browser that has logged in with the link."""
    command = (*FLOE, "session", "link")
    link = subprocess.run(command, cwd=demo.root, check=True, capture_output=True, text=True).stdout
    with open_page(tmp_path_factory.mktemp("browser")) as page:
        page.set_default_timeout(LOADS)
        page.goto(link.strip())
        page.wait_for_url(lambda url: "/login" not in url)
        yield page


def node(page: Page, name: str) -> Locator:
    """An asset in a graph."""
    nodes = page.locator("foreignObject").filter(has=page.get_by_text(name, exact=True))
    return nodes.filter(has_text="Asset checks")


def left_of(page: Page, name: str) -> float:
    """The left edge of an asset in the graph, which flows from left to right."""
    asset = node(page, name)
    expect(asset).to_have_count(1, timeout=LOADS)
    box = asset.bounding_box()
    assert box is not None
    return box["x"]


@pytest.mark.parametrize(
    ("gold", "silver"),
    [("customer_orders", SILVER), ("revenue_by_product", SILVER[1:])],
)
def test_the_graph_shows_models_downstream_of_bronze_with_their_checks(
    dagster: str, page: Page, gold: str, silver: tuple[str, ...]
) -> None:
    page.goto(f"{dagster}/assets/gold/{gold}?view=lineage&lineageScope=upstream&lineageDepth=5")
    for name in silver:
        raw = name.replace("stg_", "raw_")
        assert left_of(page, raw) < left_of(page, name) < left_of(page, gold)
    for name in (gold, *silver):
        count = CHECKS[name]
        expect(node(page, name)).to_contain_text(f"{count} / {count} Passed", timeout=LOADS)


def test_the_page_of_a_model_lists_its_tests_as_checks(dagster: str, page: Page) -> None:
    page.goto(f"{dagster}/assets/silver/stg_customers?view=checks")
    for name in ("not_null_stg_customers_customer_id", "unique_stg_customers_customer_id"):
        expect(page.get_by_text(name, exact=True).first).to_be_visible(timeout=LOADS)


def test_the_page_of_a_model_shows_its_rows_and_its_version(dagster: str, page: Page) -> None:
    page.goto(f"{dagster}/assets/gold/customer_orders")
    expect(page.get_by_text("floe/version", exact=True).first).to_be_visible(timeout=LOADS)
    expect(page.get_by_text("2026-01-05.1", exact=True).first).to_be_visible()
    expect(page.locator("body")).to_contain_text("Row count")
