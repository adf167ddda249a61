"""Column lineage: which column comes from which, and what it is used for."""

from datetime import timedelta

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from floe.catalog import column_lineage
from floe.catalog.column_edges import (
    AGGREGATE,
    DIRECT,
    FILTER,
    JOIN,
    ColumnRef,
    NewColumnEdge,
    observe_column_edges,
)
from floe.catalog.column_lineage import ColumnLineage, ColumnNotFoundError, walk_columns
from floe.catalog.database import Catalog
from floe.catalog.tables import ColumnEdge, ColumnSighting, Dataset
from tests.catalog.graph import NOON, dataset, process

HOUR = timedelta(hours=1)


class Exposure:
    """trades and fx become exposure in euro, which becomes a total per client."""

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


def reached(found: ColumnLineage) -> list[tuple[str, str, int]]:
    return sorted((one.dataset, one.column, one.depth) for one in found.columns)


def test_a_column_is_followed_back_to_what_it_was_made_from(catalog: Catalog) -> None:
    with catalog.writing() as session:
        case = Exposure(session)
        found = walk_columns(session, row(session, case.total), "amount")
    assert reached(found) == [
        ("credit.exposure", "amount", 1),
        ("credit.exposure", "client", 1),
        ("credit.total", "amount", 0),
        ("credit.trades", "client", 2),
        ("credit.trades", "notional", 2),
        ("market.fx_rates", "ccy", 2),
        ("market.fx_rates", "rate", 2),
    ]
    assert {(link.kind, link.process) for link in found.edges} == {
        (AGGREGATE, "floe/risk/total"),
        (FILTER, "floe/risk/total"),
        (DIRECT, "floe/risk/exposure_daily"),
        (JOIN, "floe/risk/exposure_daily"),
    }


def test_a_column_is_followed_forward_and_its_neighbours_are_not(catalog: Catalog) -> None:
    with catalog.writing() as session:
        case = Exposure(session)
        found = walk_columns(session, row(session, case.fx), "rate", "downstream", depth=1)
    assert reached(found) == [("credit.exposure", "amount", 1), ("market.fx_rates", "rate", 0)]


def test_without_a_column_all_that_have_lineage_are_followed(catalog: Catalog) -> None:
    with catalog.writing() as session:
        case = Exposure(session)
        found = walk_columns(session, row(session, case.exposure), depth=1)
    assert [one for one in reached(found) if one[2] == 0] == [
        ("credit.exposure", "amount", 0),
        ("credit.exposure", "client", 0),
    ]
    assert len(found.edges) == 4


def test_many_columns_give_the_same_answer_as_few(
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
        found = walk_columns(session, row(session, case.total), "balance", depth=99)
    assert reached(found) == [("credit.total", "balance", 0)]
    assert len(found.edges) == 1


def test_a_walk_over_too_many_columns_stops_and_says_so(catalog: Catalog) -> None:
    with catalog.writing() as session:
        case = Exposure(session)
        found = walk_columns(session, row(session, case.total), "amount", max_columns=2)
    assert found.truncated
    assert len(found.columns) == 2


def test_a_misspelt_column_is_corrected(catalog: Catalog) -> None:
    with catalog.writing() as session:
        case = Exposure(session)
        with pytest.raises(ColumnNotFoundError, match="Did you mean 'amount'"):
            walk_columns(session, row(session, case.total), "amuont")


def test_a_known_column_without_lineage_is_its_own_answer(catalog: Catalog) -> None:
    with catalog.writing() as session:
        case = Exposure(session)
        found = walk_columns(session, row(session, case.trades), "notional", "upstream")
    assert reached(found) == [("credit.trades", "notional", 0)]


def test_a_column_lineage_is_kept_once_with_its_first_and_last_sight(catalog: Catalog) -> None:
    with catalog.writing() as session:
        case = Exposure(session)
        for moment in (NOON + HOUR, NOON - HOUR):
            observe_column_edges(session, case.edges, moment)
        observe_column_edges(session, [], NOON)
        session.expire_all()
        assert len(list(session.scalars(select(ColumnEdge)))) == 6
        sightings = session.scalars(select(ColumnSighting))
        assert {(one.first_seen, one.last_seen) for one in sightings} == {
            (NOON - HOUR, NOON + HOUR)
        }


@pytest.mark.parametrize("late", [False, True])
def test_the_column_lineage_that_was_seen_last_holds(catalog: Catalog, late: bool) -> None:
    with catalog.writing() as session:
        case = Exposure(session)
        changed = [
            NewColumnEdge(ColumnRef(case.fx, "ccy"), ColumnRef(case.total, "amount"), case.sum)
        ]
        observe_column_edges(session, changed, NOON - HOUR if late else NOON + HOUR)
        found = walk_columns(session, row(session, case.total), "amount", depth=1)
    sources = {(one.dataset, one.column) for one in found.columns if one.depth}
    if late:
        assert sources == {("credit.exposure", "amount"), ("credit.exposure", "client")}
    else:
        assert sources == {("market.fx_rates", "ccy")}
