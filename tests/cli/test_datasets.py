"""`floe datasets`: search and list, as a user types it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from floe.catalog.database import Catalog, open_catalog
from floe.catalog.migrate import upgrade_catalog
from floe.catalog.search_index import index_datasets
from floe.cli.datasets import datasets
from tests.catalog.graph import dataset

app = typer.Typer()
app.command()(datasets)


@pytest.fixture(autouse=True)
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    """An empty catalog, set by FLOE_CATALOG_URL."""
    url = f"sqlite:///{tmp_path / 'catalog.db'}"
    monkeypatch.setenv("FLOE_CATALOG_URL", url)
    monkeypatch.setenv("COLUMNS", "100")
    catalog = open_catalog(url)
    upgrade_catalog(catalog)
    yield catalog
    catalog.close()


def fill(catalog: Catalog) -> None:
    with catalog.writing() as session:
        dataset_ids = [
            dataset(
                session, "bronze.raw_customers", owner_team="Customer Data", default_format="CSV"
            ),
            dataset(session, "credit.exposure", category="credit", owner_team="Credit Risk"),
            dataset(session, "market.fx_rates", category="market"),
            dataset(session, "market.fx_rates", namespace="old", full_name="old/market.fx_rates"),
        ]
        index_datasets(session, dataset_ids)


def floe_datasets(*arguments: str) -> str:
    return CliRunner().invoke(app, arguments, catch_exceptions=False).stdout


def test_an_empty_catalog_prints_how_to_fill_it() -> None:
    assert floe_datasets() == (
        "No dataset is registered yet. Register a project with: floe register\n"
    )


def test_a_search_prints_a_table_of_hits(catalog: Catalog) -> None:
    fill(catalog)
    printed = floe_datasets("raw cust")
    assert "bronze.raw_customers" in printed
    assert "Customer Data" in printed
    assert "credit.exposure" not in printed


def test_the_full_name_is_shown_if_the_short_one_is_ambiguous(catalog: Catalog) -> None:
    fill(catalog)
    printed = floe_datasets()
    assert "lake/market.fx_rates" in printed
    assert "old/market.fx_rates" in printed
    assert "lake/credit.exposure" not in printed


def test_filters_and_limit_narrow_the_list(catalog: Catalog) -> None:
    fill(catalog)
    assert "credit.exposure" in floe_datasets("--category", "credit")
    assert "market.fx_rates" not in floe_datasets("--team", "Credit Risk")
    first = json.loads(floe_datasets("--limit", "3", "--json"))
    rest = json.loads(floe_datasets("--limit", "3", "--json", "--cursor", first["next_cursor"]))
    assert (len(first["hits"]), len(rest["hits"])) == (3, 1)
    assert f"--cursor {first['next_cursor']}" in floe_datasets("--limit", "3")


def test_json_has_hits_facets_and_total(catalog: Catalog) -> None:
    fill(catalog)
    answer = json.loads(floe_datasets("market", "--json"))
    assert answer["total"] == 2
    assert answer["facets"]["category"] == [{"value": "market", "count": 1}]


def test_a_search_without_a_hit_suggests_similar_names(catalog: Catalog) -> None:
    fill(catalog)
    assert floe_datasets("raw_custmers") == (
        "No dataset matches 'raw_custmers'. Did you mean: bronze.raw_customers?\n"
    )
    assert "fewer words" in floe_datasets("zzz")
