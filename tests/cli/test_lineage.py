"""`floe lineage`: a tree for people, JSON for scripts, DOT for pictures."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from floe.catalog import find_dataset, find_process
from floe.catalog.column_lineage import (
    AGGREGATE,
    ColumnNotFoundError,
    ColumnRef,
)
from floe.catalog.database import Catalog, open_catalog
from floe.catalog.edges import consumes, declare_edges, produces
from floe.catalog.errors import DatasetNotFoundError
from floe.catalog.migrate import upgrade_catalog
from floe.cli.lineage import lineage
from tests.catalog.graph import (
    NOON,
    NewColumnEdge,
    dataset,
    observe_column_edges,
    observe_edges,
    process,
)

FX_AND_EXPOSURE = ("market.fx_rates", "credit.exposure")
app = typer.Typer()
app.command()(lineage)


@pytest.fixture(autouse=True)
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    """Rates and trades flow into exposure, and exposure into two reports."""
    url = f"sqlite:///{tmp_path / 'catalog.db'}"
    monkeypatch.setenv("FLOE_CATALOG_URL", url)
    monkeypatch.setenv("COLUMNS", "100")
    catalog = open_catalog(url)
    upgrade_catalog(catalog)
    with catalog.writing() as session:
        fx = dataset(session, "market.fx_rates", default_format="CSV", owner_team="Market Data")
        exposure = dataset(session, "credit.exposure")
        report = dataset(session, 'credit."report"', status="DEPRECATED")
        daily = process(session, "floe/risk/exposure_daily")
        send = process(session, "AUTOSYS/NIGHT/send")
        both = [consumes(fx, daily), produces(daily, exposure), consumes(exposure, send)]
        declare_edges(session, [*both, produces(send, report), consumes(fx, send)], NOON)
        observe_edges(session, both, NOON)
        amount = ColumnRef(exposure, "amount")
        observe_column_edges(
            session, [NewColumnEdge(ColumnRef(fx, "rate"), amount, daily, AGGREGATE)], NOON
        )
    yield catalog
    catalog.close()


def floe_lineage(*arguments: str) -> str:
    return CliRunner().invoke(app, arguments, catch_exceptions=False).stdout


def test_the_tree_shows_both_sides_and_each_node_once() -> None:
    assert floe_lineage("credit.exposure") == (
        "Comes from\n"
        "credit.exposure\n"
        "└── floe/risk/exposure_daily\n"
        "    └── market.fx_rates  CSV · Market Data\n"
        "Leads to\n"
        "credit.exposure\n"
        "└── AUTOSYS/NIGHT/send\n"
        '    └── credit."report"  DEPRECATED\n'
    )


def test_a_node_reached_twice_is_drawn_once() -> None:
    assert floe_lineage("market.fx_rates", "--downstream") == (
        "Leads to\n"
        "market.fx_rates  CSV · Market Data\n"
        "├── AUTOSYS/NIGHT/send\n"
        '│   └── credit."report"  DEPRECATED\n'
        "└── floe/risk/exposure_daily\n"
        "    └── credit.exposure\n"
        "        └── AUTOSYS/NIGHT/send  ↑ shown above\n"
    )


def test_nodes_beyond_the_depth_are_marked_in_tree_and_json() -> None:
    # The report is two datasets from the feed, and one by the other process.
    shown = floe_lineage("floe/risk/exposure_daily", "--downstream", "--depth", "1")
    assert shown == (
        "Leads to\n"
        "floe/risk/exposure_daily\n"
        "└── credit.exposure  … more\n"
        "1 node(s) marked '… more' have more neighbours: use a larger --depth.\n"
    )
    words = ("floe/risk/exposure_daily", "--downstream", "--json", "--depth")
    for depth, stopped in (("1", ["credit.exposure"]), ("2", [])):
        answer = json.loads(floe_lineage(*words, depth))["downstream"]
        assert [one["name"] for one in answer["nodes"] if one["more"]] == stopped
        assert answer["truncated"] == bool(stopped)


def test_depth_and_kind_narrow_the_tree() -> None:
    assert floe_lineage(
        "credit.exposure", "--upstream", "--depth", "1", "--kind", "datasets"
    ).splitlines()[1:] == [
        "credit.exposure",
        "└── market.fx_rates  CSV · Market Data  via floe/risk/exposure_daily",
    ]


def test_a_process_is_found_by_its_key_and_its_name() -> None:
    assert floe_lineage("send", "--downstream") == floe_lineage(
        "AUTOSYS/NIGHT/send", "--downstream"
    )


def test_a_dataset_without_lineage_prints_nothing_known() -> None:
    assert "nothing known" in floe_lineage("market.fx_rates", "--upstream")


def test_as_of_shows_past_lineage() -> None:
    before = floe_lineage("credit.exposure", "--upstream", "--as-of", "2026-08-01")
    assert "nothing known" in before


def test_json_has_nodes_edges_depths_and_paths() -> None:
    answer = json.loads(floe_lineage("market.fx_rates", "--json"))
    assert answer["upstream"]["edges"] == []
    down = answer["downstream"]
    exposure = next(node for node in down["nodes"] if node["name"] == "credit.exposure")
    assert (exposure["depth"], exposure["path"]) == (
        1,
        ["lake/market.fx_rates", "floe/risk/exposure_daily", "lake/credit.exposure"],
    )
    assert {
        "source": "lake/market.fx_rates",
        "target": "floe/risk/exposure_daily",
        "role": "CONSUMES",
        "known_by": ["DECLARED", "OBSERVED"],
        "via": None,
    } in down["edges"]
    assert down["truncated"] is False


def test_dot_quotes_names_and_dashes_edges_never_observed() -> None:
    written = floe_lineage("market.fx_rates", "--dot")
    assert written.startswith("digraph lineage {")
    assert 'label="credit.\\"report\\"  DEPRECATED", shape=cylinder' in written
    assert written.count("style=dashed") == 2
    assert written.count("style=solid") == 3


def test_columns_are_followed_with_their_use_and_process() -> None:
    assert floe_lineage("credit.exposure", "--columns", "--upstream") == (
        "Comes from\n"
        "credit.exposure.amount\n"
        "└── market.fx_rates.rate  aggregate by floe/risk/exposure_daily\n"
    )
    answer = json.loads(floe_lineage("market.fx_rates", "--column", "rate", "--json"))
    assert answer["downstream"]["edges"] == [
        {
            "source": {"dataset": "market.fx_rates", "column": "rate"},
            "target": {"dataset": "credit.exposure", "column": "amount"},
            "kind": "AGGREGATE",
            "process": "floe/risk/exposure_daily",
        }
    ]
    assert "plaintext" in floe_lineage("market.fx_rates", "--columns", "--dot")


def test_a_dataset_without_column_lineage_is_listed_as_also_read(night: Catalog) -> None:
    with night.writing() as session:
        fx, exposure = (find_dataset(session, name).dataset_id for name in FX_AND_EXPOSURE)
        holidays = dataset(session, "ref.holidays")
        daily = find_process(session, "floe/risk/exposure_daily").process_id
        edges = [
            NewColumnEdge(ColumnRef(fx, "rate"), ColumnRef(exposure, "amount"), daily, AGGREGATE),
            NewColumnEdge(ColumnRef(fx, "ccy"), ColumnRef(exposure, "*"), daily, "JOIN"),
            NewColumnEdge(ColumnRef(holidays, "*"), ColumnRef(exposure, "*"), daily, "ROWS"),
        ]
        observe_column_edges(session, edges, NOON + timedelta(hours=1))
    note = "Also read, but no column reaches the output: ref.holidays\n"
    assert note in floe_lineage("credit.exposure", "--columns")
    assert note in floe_lineage("credit.exposure", "--column", "amount", "--upstream")
    assert "also read" not in floe_lineage("credit.exposure", "--columns", "--downstream")
    answer = json.loads(floe_lineage("credit.exposure", "--columns", "--json"))
    assert answer["upstream"]["also_read"] == ["ref.holidays"]


def test_unknown_names_are_refused_with_a_suggestion() -> None:
    with pytest.raises(DatasetNotFoundError, match=r"Did you mean 'credit\.exposure'"):
        floe_lineage("credit.exposur")
    with pytest.raises(ColumnNotFoundError, match="Did you mean 'rate'"):
        floe_lineage("market.fx_rates", "--column", "rat")
