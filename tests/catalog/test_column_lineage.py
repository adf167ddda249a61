"""Column lineage: which columns feed which, and how."""

from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from floe.catalog import column_lineage
from floe.catalog.column_lineage import (
    AGGREGATE,
    DIRECT,
    FILTER,
    JOIN,
    ColumnLineage,
    ColumnNotFoundError,
    ColumnRef,
    walk_columns,
)
from floe.catalog.database import Catalog
from floe.catalog.tables import Dataset
from tests.catalog.graph import NOON, NewColumnEdge, dataset, observe_column_edges, process

HOUR = timedelta(hours=1)


class Exposure:
    """trades and fx feed exposure in euro, which feeds a total per client."""

    def __init__(self, session: Session) -> None:
        self.trades = dataset(session, "credit.trades")
        self.fx = dataset(session, "market.fx_rates")
        self.exposure = dataset(session, "credit.exposure")
        self.total = dataset(session, "credit.total")
        self.daily = process(session, "floe/risk/exposure_daily")
        self.sum = process(session, "floe/risk/total")
        amount, client = ColumnRef(self.exposure, "amount"), ColumnRef(self.exposure, "client")
        self.edges = [
            NewColumnEdge(ColumnRef(self.trades, "notional"), amount, self.daily),
            NewColumnEdge(ColumnRef(self.fx, "rate"), amount, self.daily),
            NewColumnEdge(ColumnRef(self.fx, "ccy"), amount, self.daily, JOIN),
            NewColumnEdge(ColumnRef(self.trades, "client"), client, self.daily),
            NewColumnEdge(amount, ColumnRef(self.total, "amount"), self.sum, AGGREGATE),
            NewColumnEdge(client, ColumnRef(self.total, "amount"), self.sum, FILTER),
        ]
        observe_column_edges(session, self.edges, NOON)


def row(session: Session, dataset_id: int) -> Dataset:
    return session.get_one(Dataset, dataset_id)


def reached(lineage: ColumnLineage) -> list[tuple[str, str, int]]:
    return sorted((node.dataset, node.column, node.depth) for node in lineage.columns)


def test_a_column_is_followed_upstream_to_its_sources(catalog: Catalog) -> None:
    with catalog.writing() as session:
        case = Exposure(session)
        lineage = walk_columns(session, row(session, case.total), "amount")
    assert reached(lineage) == [
        ("credit.exposure", "amount", 1),
        ("credit.exposure", "client", 1),
        ("credit.total", "amount", 0),
        ("credit.trades", "client", 2),
        ("credit.trades", "notional", 2),
        ("market.fx_rates", "ccy", 2),
        ("market.fx_rates", "rate", 2),
    ]
    assert {(link.kind, link.process) for link in lineage.edges} == {
        (AGGREGATE, "floe/risk/total"),
        (FILTER, "floe/risk/total"),
        (DIRECT, "floe/risk/exposure_daily"),
        (JOIN, "floe/risk/exposure_daily"),
    }


def test_a_column_is_followed_downstream_without_its_siblings(catalog: Catalog) -> None:
    with catalog.writing() as session:
        case = Exposure(session)
        lineage = walk_columns(session, row(session, case.fx), "rate", "downstream", depth=1)
    assert reached(lineage) == [("credit.exposure", "amount", 1), ("market.fx_rates", "rate", 0)]


def test_without_a_column_all_columns_with_lineage_are_followed(catalog: Catalog) -> None:
    with catalog.writing() as session:
        case = Exposure(session)
        lineage = walk_columns(session, row(session, case.exposure), depth=1)
    assert [node for node in reached(lineage) if node[2] == 0] == [
        ("credit.exposure", "amount", 0),
        ("credit.exposure", "client", 0),
    ]
    assert len(lineage.edges) == 4


def test_many_columns_give_the_same_result_as_few(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with catalog.writing() as session:
        case = Exposure(session)
        few = walk_columns(session, row(session, case.total), "amount")
        monkeypatch.setattr(column_lineage, "MAX_NAMES", 0)
        many = walk_columns(session, row(session, case.total), "amount")
    assert reached(many) == reached(few)


def test_a_column_that_feeds_itself_ends_the_walk(catalog: Catalog) -> None:
    with catalog.writing() as session:
        case = Exposure(session)
        balance = ColumnRef(case.total, "balance")
        itself = NewColumnEdge(balance, balance, case.sum)
        observe_column_edges(session, [itself], NOON + HOUR)
        lineage = walk_columns(session, row(session, case.total), "balance", depth=99)
    assert reached(lineage) == [("credit.total", "balance", 0)]
    assert len(lineage.edges) == 1


def test_a_walk_over_too_many_columns_stops_and_is_marked_truncated(catalog: Catalog) -> None:
    with catalog.writing() as session:
        case = Exposure(session)
        lineage = walk_columns(session, row(session, case.total), "amount", max_columns=2)
    assert lineage.truncated
    assert len(lineage.columns) == 2


def test_a_misspelt_column_is_rejected_with_a_suggestion(catalog: Catalog) -> None:
    with catalog.writing() as session:
        case = Exposure(session)
        with pytest.raises(ColumnNotFoundError, match="Did you mean 'amount'"):
            walk_columns(session, row(session, case.total), "amuont")


def test_a_known_column_without_lineage_returns_only_itself(catalog: Catalog) -> None:
    with catalog.writing() as session:
        case = Exposure(session)
        lineage = walk_columns(session, row(session, case.trades), "notional", "upstream")
    assert reached(lineage) == [("credit.trades", "notional", 0)]


@pytest.mark.parametrize("late", [False, True])
def test_the_column_lineage_seen_last_is_current(catalog: Catalog, late: bool) -> None:
    with catalog.writing() as session:
        case = Exposure(session)
        changed = [
            NewColumnEdge(ColumnRef(case.fx, "ccy"), ColumnRef(case.total, "amount"), case.sum)
        ]
        observe_column_edges(session, changed, NOON - HOUR if late else NOON + HOUR)
        lineage = walk_columns(session, row(session, case.total), "amount", depth=1)
    sources = {(node.dataset, node.column) for node in lineage.columns if node.depth}
    if late:
        assert sources == {("credit.exposure", "amount"), ("credit.exposure", "client")}
    else:
        assert sources == {("market.fx_rates", "ccy")}
