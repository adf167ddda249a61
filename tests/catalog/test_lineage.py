"""Lineage: nodes upstream and downstream, with their distance and path."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ibm_db_sa.ibm_db import DB2Dialect_ibm_db
from sqlalchemy import delete
from sqlalchemy.exc import OperationalError, ProgrammingError
from sqlalchemy.orm import Session

from floe.catalog import lineage as lineage_module
from floe.catalog.database import Catalog, open_catalog
from floe.catalog.edges import (
    DATASET,
    DECLARED,
    OBSERVED,
    PROCESS,
    NewEdge,
    Node,
    consumes,
    declare_edges,
    produces,
    redeclare_edges,
    triggers,
)
from floe.catalog.lineage import Direction, Kind, Lineage, walk_lineage
from floe.catalog.migrate import upgrade_catalog
from floe.catalog.queries import PreparedSelect
from floe.catalog.stores import store_for
from floe.catalog.tables import LineageEdge, Process
from tests.catalog.graph import NOON, dataset, observe_edges, process

HOUR = timedelta(hours=1)


class Risk:
    """fx and trades feed exposure, which feeds a report."""

    def __init__(self, session: Session) -> None:
        self.fx = dataset(session, "market.fx_rates", default_format="CSV", owner_team="Market")
        self.trades = dataset(session, "credit.trades")
        self.exposure = dataset(session, "credit.exposure")
        self.report = dataset(session, "credit.report")
        self.daily = process(session, "floe/risk/exposure_daily", technology="SPARK")
        self.print = process(session, "AUTOSYS/NIGHT/print_report")
        self.edges = [
            consumes(self.fx, self.daily),
            consumes(self.trades, self.daily),
            produces(self.daily, self.exposure),
            consumes(self.exposure, self.print),
            produces(self.print, self.report),
        ]
        declare_edges(session, self.edges, NOON)


def names(lineage: Lineage) -> list[tuple[str, int]]:
    return sorted((node.name, node.depth) for node in lineage.nodes)


def links(lineage: Lineage) -> set[tuple[str, str]]:
    name = {node.node: node.name for node in lineage.nodes}
    return {(name[link.source], name[link.target]) for link in lineage.edges}


@contextmanager
def count_fetches() -> Iterator[list[Any]]:
    """Record every statement that is sent to the driver."""
    fetches: list[Any] = []
    fetch = PreparedSelect.fetch

    def record(self: PreparedSelect, *args: Any, **values: Any) -> Any:
        fetches.append(values)
        return fetch(self, *args, **values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PreparedSelect, "fetch", record)
        yield fetches


def test_downstream_lists_datasets_and_processes_with_their_distance(catalog: Catalog) -> None:
    with catalog.writing() as session:
        risk = Risk(session)
        lineage = walk_lineage(session, Node(DATASET, risk.fx), "downstream", depth=1)
    assert names(lineage) == [
        ("credit.exposure", 1),
        ("exposure_daily", 1),
        ("market.fx_rates", 0),
    ]
    assert links(lineage) == {
        ("market.fx_rates", "exposure_daily"),
        ("exposure_daily", "credit.exposure"),
    }
    # The walk stopped there although print_report reads the exposure.
    assert [node.name for node in lineage.nodes if node.more] == ["credit.exposure"]
    assert lineage.truncated


def test_a_walk_that_reaches_every_end_is_not_truncated(catalog: Catalog) -> None:
    with catalog.writing() as session:
        risk = Risk(session)
        lineage = walk_lineage(session, Node(DATASET, risk.fx), "downstream", depth=2)
        over = walk_lineage(session, Node(DATASET, risk.fx), depth=1, kind="datasets")
    assert "credit.report" in {node.name for node in lineage.nodes}
    assert not lineage.truncated
    assert not any(node.more for node in lineage.nodes)
    assert [node.name for node in over.nodes if node.more] == ["credit.exposure"]
    assert over.truncated


def test_edges_of_an_upstream_walk_still_point_downstream(
    catalog: Catalog,
) -> None:
    with catalog.writing() as session:
        risk = Risk(session)
        lineage = walk_lineage(session, Node(DATASET, risk.exposure), "upstream")
    assert names(lineage) == [
        ("credit.exposure", 0),
        ("credit.trades", 1),
        ("exposure_daily", 1),
        ("market.fx_rates", 1),
    ]
    assert ("exposure_daily", "credit.exposure") in links(lineage)


def test_both_directions_show_upstream_and_downstream_but_not_siblings(catalog: Catalog) -> None:
    with catalog.writing() as session:
        risk = Risk(session)
        lineage = walk_lineage(session, Node(DATASET, risk.fx), "both", depth=9)
        middle = walk_lineage(session, Node(PROCESS, risk.print), "both", depth=1)
    assert "credit.trades" not in {node.name for node in lineage.nodes}
    assert names(middle) == [("credit.exposure", 1), ("credit.report", 1), ("print_report", 0)]


def test_a_node_has_key_status_team_and_technology(catalog: Catalog) -> None:
    with catalog.writing() as session:
        risk = Risk(session)
        fx, daily, _ = walk_lineage(session, Node(DATASET, risk.fx), depth=1).nodes
    assert (fx.key, fx.status, fx.team, fx.technology) == (
        "lake/market.fx_rates",
        "ACTIVE",
        "Market",
        "CSV",
    )
    assert (daily.key, daily.technology) == ("floe/risk/exposure_daily", "SPARK")


def test_datasets_alone_are_linked_through_the_process_between_them(catalog: Catalog) -> None:
    with catalog.writing() as session:
        risk = Risk(session)
        lineage = walk_lineage(session, Node(DATASET, risk.fx), depth=2, kind="datasets")
    assert names(lineage) == [("credit.exposure", 1), ("credit.report", 2), ("market.fx_rates", 0)]
    assert [(link.role, link.via) for link in lineage.edges] == [
        ("DERIVES", "floe/risk/exposure_daily"),
        ("DERIVES", "AUTOSYS/NIGHT/print_report"),
    ]


def test_processes_alone_are_linked_by_datasets_and_by_triggers(catalog: Catalog) -> None:
    with catalog.writing() as session:
        risk = Risk(session)
        mail = process(session, "AUTOSYS/NIGHT/mail")
        declare_edges(session, [triggers(risk.print, mail)], NOON)
        lineage = walk_lineage(session, Node(PROCESS, risk.daily), kind="processes")
    assert names(lineage) == [("exposure_daily", 0), ("mail", 2), ("print_report", 1)]
    assert [(link.role, link.via) for link in lineage.edges] == [
        ("DERIVES", "lake/credit.exposure"),
        ("TRIGGERS", None),
    ]


def test_a_trigger_between_processes_links_no_datasets(catalog: Catalog) -> None:
    with catalog.writing() as session:
        risk = Risk(session)
        mail, log = process(session, "AUTOSYS/NIGHT/mail"), dataset(session, "ops.mail_log")
        declare_edges(session, [triggers(risk.daily, mail), produces(mail, log)], NOON)
        data = walk_lineage(session, Node(DATASET, risk.fx), kind="datasets", depth=9)
        both = walk_lineage(session, Node(DATASET, risk.fx), depth=9)
    assert "ops.mail_log" not in {node.name for node in data.nodes}
    assert "ops.mail_log" in {node.name for node in both.nodes}


def test_datasets_around_a_process_are_one_step_away(catalog: Catalog) -> None:
    with catalog.writing() as session:
        risk = Risk(session)
        lineage = walk_lineage(session, Node(PROCESS, risk.daily), "both", depth=1, kind="datasets")
    assert names(lineage) == [
        ("credit.exposure", 1),
        ("credit.trades", 1),
        ("exposure_daily", 0),
        ("market.fx_rates", 1),
    ]


def test_an_edge_says_whether_it_is_declared_observed_or_both(catalog: Catalog) -> None:
    with catalog.writing() as session:
        risk = Risk(session)
        observe_edges(session, [risk.edges[0]], NOON)
        lineage = walk_lineage(session, Node(DATASET, risk.fx), depth=1)
        over = walk_lineage(session, Node(DATASET, risk.fx), depth=1, kind="datasets")
    assert [link.known_by for link in lineage.edges] == [(DECLARED, OBSERVED), (DECLARED,)]
    assert [link.known_by for link in over.edges] == [(DECLARED,)]


def test_ended_edges_are_shown_only_for_a_time_when_they_were_open(
    catalog: Catalog,
) -> None:
    with catalog.writing() as session:
        risk = Risk(session)
        redeclare_edges(session, [risk.print], [], NOON + 2 * HOUR)
        start = Node(DATASET, risk.exposure)
        assert len(walk_lineage(session, start).nodes) == 1
        assert len(walk_lineage(session, start, as_of=NOON + HOUR).nodes) == 3
        assert len(walk_lineage(session, start, as_of=NOON + 2 * HOUR).nodes) == 1
        assert len(walk_lineage(session, start, as_of=NOON - HOUR).nodes) == 1


def test_a_walk_over_a_cycle_ends(catalog: Catalog) -> None:
    with catalog.writing() as session:
        risk = Risk(session)
        declare_edges(session, [consumes(risk.report, risk.daily)], NOON)
        lineage = walk_lineage(session, Node(DATASET, risk.fx), depth=1000)
        over = walk_lineage(session, Node(DATASET, risk.exposure), "both", 99, kind="datasets")
    assert len(lineage.nodes) == 5
    assert ("credit.report", "exposure_daily") in links(lineage)
    assert {node.depth for node in over.nodes} == {0, 1}


def test_a_process_that_writes_its_own_input_is_shown_once(catalog: Catalog) -> None:
    with catalog.writing() as session:
        state, job = dataset(session, "ops.state"), process(session, "AUTOSYS/NIGHT/tick")
        declare_edges(session, [consumes(state, job), produces(job, state)], NOON)
        lineage = walk_lineage(session, Node(DATASET, state), kind="datasets")
    assert [(link.source, link.target) for link in lineage.edges] == [
        (Node(DATASET, state), Node(DATASET, state))
    ]


def test_each_node_has_a_shortest_path(catalog: Catalog) -> None:
    with catalog.writing() as session:
        risk = Risk(session)
        declare_edges(session, [consumes(risk.fx, risk.print)], NOON)
        lineage = walk_lineage(session, Node(DATASET, risk.fx))
    assert lineage.path_to(Node(DATASET, risk.report)) == [
        Node(DATASET, risk.fx),
        Node(PROCESS, risk.print),
        Node(DATASET, risk.report),
    ]
    assert lineage.path_to(lineage.start) == [lineage.start]


def test_a_walk_over_too_many_nodes_stops_and_is_marked_truncated(catalog: Catalog) -> None:
    with catalog.writing() as session:
        hub = dataset(session, "market.calendar")
        jobs = [process(session, f"AUTOSYS/NIGHT/job_{n}") for n in range(10)]
        declare_edges(session, [consumes(hub, job) for job in jobs], NOON)
        lineage = walk_lineage(session, Node(DATASET, hub), max_nodes=4)
    assert lineage.truncated
    assert len(lineage.nodes) == 4
    assert {link.target for link in lineage.edges} <= {node.node for node in lineage.nodes}


def test_a_node_with_too_many_neighbours_truncates_the_walk(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lineage_module, "MAX_ROWS", 3)
    with catalog.writing() as session:
        hub = dataset(session, "market.calendar")
        jobs = [process(session, f"AUTOSYS/NIGHT/job_{n}") for n in range(5)]
        declare_edges(session, [consumes(hub, job) for job in jobs], NOON)
        lineage = walk_lineage(session, Node(DATASET, hub))
    assert lineage.truncated
    assert len(lineage.nodes) == 4


def test_a_node_deleted_during_the_walk_is_shown_as_gone(catalog: Catalog) -> None:
    with catalog.writing() as session:
        risk = Risk(session)
        session.execute(delete(Process).where(Process.process_id == risk.daily))
        lineage = walk_lineage(session, Node(DATASET, risk.fx), depth=1)
    assert [node.status for node in lineage.nodes] == ["ACTIVE", "GONE", "ACTIVE"]


def test_a_walk_runs_one_query_per_level(catalog: Catalog) -> None:
    with catalog.writing() as session:
        hub = dataset(session, "market.calendar")
        jobs = [process(session, f"AUTOSYS/NIGHT/job_{n}") for n in range(50)]
        outputs = [dataset(session, f"night.out_{n}") for n in range(50)]
        reads = [consumes(hub, job) for job in jobs]
        writes = [produces(job, out) for job, out in zip(jobs, outputs, strict=True)]
        declare_edges(session, reads + writes, NOON)
        with count_fetches() as fetches:
            lineage = walk_lineage(session, Node(DATASET, hub), depth=3)
    assert len(lineage.nodes) == 101
    assert len(fetches) == 3 + 2  # the levels, then the names of datasets and of processes


def test_a_database_error_is_raised_as_an_sqlalchemy_error(catalog: Catalog) -> None:
    with catalog.writing() as session:
        risk = Risk(session)
    with catalog.engine.begin() as connection:
        LineageEdge.__table__.drop(connection)  # type: ignore[attr-defined]
    with (
        catalog.reading() as session,
        pytest.raises((OperationalError, ProgrammingError), match="lineage_edge"),
    ):
        walk_lineage(session, Node(DATASET, risk.fx))


@pytest.mark.parametrize("side", ["upstream", "downstream"])
@pytest.mark.parametrize("past", [False, True])
def test_every_query_of_a_walk_compiles_for_db2(side: str, past: bool) -> None:
    store, dialect = store_for("db2"), DB2Dialect_ibm_db()
    for node_type in (DATASET, PROCESS):
        lineage_module._edges_from(store, dialect, side, node_type, past=past)
        lineage_module._node_rows(store, dialect, node_type)


# Random graphs, compared with a walk that is too simple to be wrong.

NODES = [Node(kind, node_id) for kind in (DATASET, PROCESS) for node_id in range(1, 7)]
Arrows = frozenset[tuple[Node, Node]]


@pytest.fixture(scope="module")
def graph_catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    folder = tmp_path_factory.mktemp("graph")
    catalog = open_catalog(f"sqlite:///{folder / 'catalog.db'}")
    upgrade_catalog(catalog)
    with catalog.writing() as session:
        for node_id in range(1, 7):
            assert dataset(session, f"d{node_id}") == node_id
            assert process(session, f"p{node_id}") == node_id
    yield catalog
    catalog.close()


def draw_arrows() -> st.SearchStrategy[Arrows]:
    node = st.sampled_from(NODES)
    return st.frozensets(st.tuples(node, node), max_size=30)


def steps(near: Node, far: Node, start: Node, kind: Kind) -> int:
    """Count the steps of an arrow: a process and its datasets are one step."""
    behind = near.type == PROCESS and far.type == DATASET and near != start
    return 0 if kind == "both" and behind else 1


def walk_naively(
    arrows: Iterable[tuple[Node, Node]], start: Node, depth: int, kind: Kind
) -> dict[Node, int]:
    reached, changed = {start: 0}, True
    while changed:
        changed = False
        for source, target in arrows:
            if source in reached:
                far = reached[source] + steps(source, target, start, kind)
                if far <= depth and far < reached.get(target, depth + 1):
                    reached[target], changed = far, True
    return reached


def without(arrows: Arrows, hidden: str, start: Node) -> Arrows:
    """Return the arrows between nodes of one kind, skipping one node of the other."""
    direct = {(a, b) for a, b in arrows if hidden not in (a.type, b.type)}
    over = {
        (a, d)
        for a, b in arrows
        for c, d in arrows
        if b == c and b.type == hidden and hidden not in (a.type, d.type)
    }
    own = {(a, b) for a, b in arrows if a == start and b.type != hidden}
    return frozenset(direct | over | own)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    arrows=draw_arrows(),
    start=st.sampled_from(NODES),
    depth=st.integers(0, 6),
    upstream=st.booleans(),
    kind=st.sampled_from(["both", "datasets", "processes"]),
)
def test_a_walk_over_any_graph_equals_the_naive_walk(
    graph_catalog: Catalog, arrows: Arrows, start: Node, depth: int, upstream: bool, kind: Kind
) -> None:
    with graph_catalog.writing() as session:
        session.execute(delete(LineageEdge))
        declare_edges(session, [NewEdge(a, b, "DERIVES") for a, b in arrows], NOON)
        side: Direction = "upstream" if upstream else "downstream"
        lineage = walk_lineage(session, start, side, depth, kind=kind)
    turned = frozenset((b, a) for a, b in arrows) if upstream else arrows
    hidden = {"both": "", "datasets": PROCESS, "processes": DATASET}[kind]
    shown = without(turned, hidden, start) if hidden else turned
    expected = walk_naively(shown, start, depth, kind)
    assert {node.node: node.depth for node in lineage.nodes} == expected
    taken = {(link.source, link.target) for link in lineage.edges}
    within = {
        (a, b)
        for a, b in shown
        if a in expected and expected[a] + steps(a, b, start, kind) <= depth
    }
    assert taken == {((b, a) if upstream else (a, b)) for a, b in within}
    stopped = {a for a, b in shown if a in expected and (a, b) not in within}
    assert {node.node for node in lineage.nodes if node.more} == stopped
    assert lineage.truncated == bool(stopped)
    for node, distance in expected.items():
        path = lineage.path_to(node)
        assert sum(steps(a, b, start, kind) for a, b in pairwise(path)) == distance
        assert set(pairwise(path)) <= shown
