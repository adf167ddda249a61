"""Edges: declared and observed, ended and reopened; drift between the two."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import permutations

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from floe.catalog import drift
from floe.catalog.database import Catalog
from floe.catalog.drift import UNDECLARED, UNOBSERVED, list_drift, page_drift
from floe.catalog.edges import (
    DECLARED,
    OBSERVED,
    EdgeChanges,
    consumes,
    declare_edges,
    end_edges,
    list_consumers,
    list_producers,
    produces,
    redeclare_edges,
    triggers,
)
from floe.catalog.runs import SUCCESS
from floe.catalog.tables import LineageEdge
from tests.catalog.graph import NOON, dataset, observe_edges, process, start_run

HOUR = timedelta(hours=1)


def finished_run(session: Session, process_id: int, end: datetime) -> None:
    run = start_run(session, f"00000000-0000-0000-0000-{process_id:012d}", process_id)
    run.status, run.start_ts, run.end_ts = SUCCESS, end, end
    session.flush()


def edges(session: Session) -> list[LineageEdge]:
    session.expire_all()
    return list(session.scalars(select(LineageEdge).order_by(LineageEdge.edge_id)))


def test_an_edge_has_one_row_if_declared_and_one_if_observed(catalog: Catalog) -> None:
    with catalog.writing() as session:
        fx, job = dataset(session, "market.fx_rates"), process(session, "floe/risk/exposure")
        declare_edges(session, [consumes(fx, job), consumes(fx, job)], NOON)
        declare_edges(session, [consumes(fx, job)], NOON + HOUR)
        observe_edges(session, [consumes(fx, job)], NOON)
        assert [edge.known_by for edge in edges(session)] == [DECLARED, OBSERVED]


def test_writing_no_edges_changes_nothing(catalog: Catalog) -> None:
    with catalog.writing() as session:
        assert declare_edges(session, []) == EdgeChanges()


def test_reports_give_the_same_edge_in_any_order(catalog: Catalog) -> None:
    with catalog.writing() as session:
        job = process(session, "AUTOSYS/NIGHT/load_fx")
        for index, times in enumerate(permutations((NOON, NOON - HOUR, NOON + HOUR))):
            target = dataset(session, f"market.copy_{index}")
            for seen_at in times:
                observe_edges(session, [produces(job, target)], seen_at)
        assert {(edge.first_seen, edge.last_seen) for edge in edges(session)} == {
            (NOON - HOUR, NOON + HOUR)
        }


def test_concurrent_reports_lose_no_time(catalog: Catalog) -> None:
    with catalog.writing() as session:
        fx, job = dataset(session, "market.fx_rates"), process(session, "AUTOSYS/NIGHT/load_fx")

    def report(hours: int) -> None:
        with catalog.writing() as session:
            observe_edges(session, [produces(job, fx)], NOON + hours * HOUR)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(report, (3, -2, 5, 0, 4, -3, 1, 2)))
    with catalog.reading() as session:
        (edge,) = edges(session)
        assert (edge.first_seen, edge.last_seen) == (NOON - 3 * HOUR, NOON + 5 * HOUR)


def test_an_edge_ends_when_no_longer_declared_and_reopens_when_declared_again(
    catalog: Catalog,
) -> None:
    with catalog.writing() as session:
        fx, job = dataset(session, "market.fx_rates"), process(session, "floe/risk/exposure")
        out = dataset(session, "credit.exposure")
        both = [consumes(fx, job), produces(job, out)]
        assert redeclare_edges(session, [job], both, NOON) == EdgeChanges(added=2)
        assert redeclare_edges(session, [job], both[1:], NOON + HOUR) == EdgeChanges(ended=1)
        assert [edge.ended_at for edge in edges(session)] == [NOON + HOUR, None]
        assert redeclare_edges(session, [job], both, NOON + 2 * HOUR) == EdgeChanges(reopened=1)
        assert [edge.ended_at for edge in edges(session)] == [None, None]
        assert redeclare_edges(session, [job], both, NOON + 2 * HOUR) == EdgeChanges()


def test_redeclaring_a_job_keeps_the_triggers_of_jobs_that_wait_for_it(catalog: Catalog) -> None:
    with catalog.writing() as session:
        load, risk = process(session, "AUTOSYS/NIGHT/load"), process(session, "AUTOSYS/NIGHT/risk")
        redeclare_edges(session, [risk], [triggers(load, risk)], NOON)
        assert redeclare_edges(session, [load], [], NOON) == EdgeChanges()
        assert redeclare_edges(session, [risk], [], NOON) == EdgeChanges(ended=1)


def test_a_late_report_does_not_reopen_an_edge_that_ended_after_it(catalog: Catalog) -> None:
    with catalog.writing() as session:
        fx, job = dataset(session, "market.fx_rates"), process(session, "AUTOSYS/NIGHT/load_fx")
        observe_edges(session, [produces(job, fx)], NOON)
        end_edges(session, [edge.edge_id for edge in edges(session)], NOON + 2 * HOUR)
        observe_edges(session, [produces(job, fx)], NOON + HOUR)
        assert edges(session)[0].ended_at == NOON + 2 * HOUR
        observe_edges(session, [produces(job, fx)], NOON + 3 * HOUR)
        assert edges(session)[0].ended_at is None


def test_the_newest_description_of_a_transformation_is_kept(catalog: Catalog) -> None:
    with catalog.writing() as session:
        fx, job = dataset(session, "market.fx_rates"), process(session, "floe/risk/exposure")
        declare_edges(session, [consumes(fx, job, "select 1")], NOON)
        declare_edges(session, [consumes(fx, job, "select 2")], NOON)
        declare_edges(session, [consumes(fx, job)], NOON)
        assert [edge.transform_meta for edge in edges(session)] == ["select 2"]


def test_current_readers_and_writers_of_a_dataset_are_listed_once(
    catalog: Catalog,
) -> None:
    with catalog.writing() as session:
        fx = dataset(session, "market.fx_rates")
        load, risk, old = (process(session, key) for key in ("a/load", "b/risk", "c/old"))
        declare_edges(session, [produces(load, fx), consumes(fx, risk), consumes(fx, old)], NOON)
        observe_edges(session, [consumes(fx, risk)], NOON)
        redeclare_edges(session, [old], [], NOON + HOUR)
        assert [reader.process_key for reader in list_consumers(session, fx)] == ["b/risk"]
        assert [writer.process_key for writer in list_producers(session, fx)] == ["a/load"]


def test_a_declared_input_that_a_run_did_not_read_is_drift(catalog: Catalog) -> None:
    with catalog.writing() as session:
        fx, trades = dataset(session, "market.fx_rates"), dataset(session, "credit.trades")
        job = process(session, "floe/risk/exposure")
        declare_edges(session, [consumes(fx, job), consumes(trades, job)], NOON)
        assert list_drift(session) == []
        finished_run(session, job, NOON + HOUR)
        observe_edges(session, [consumes(trades, job)], NOON + HOUR)
        drift = list_drift(session)
        assert [(edge.kind, edge.dataset) for edge in drift] == [
            (UNOBSERVED, "lake/market.fx_rates")
        ]


def test_a_run_before_the_declaration_is_not_drift(catalog: Catalog) -> None:
    with catalog.writing() as session:
        fx, job = dataset(session, "market.fx_rates"), process(session, "floe/risk/exposure")
        finished_run(session, job, NOON - HOUR)
        declare_edges(session, [consumes(fx, job)], NOON)
        assert list_drift(session) == []


def test_a_second_writer_that_was_only_observed_is_drift(catalog: Catalog) -> None:
    with catalog.writing() as session:
        fx = dataset(session, "market.fx_rates")
        declared, patch = process(session, "floe/fx/load"), process(session, "AUTOSYS/FIX/patch")
        declare_edges(session, [produces(declared, fx)], NOON)
        observe_edges(session, [produces(declared, fx), produces(patch, fx)], NOON)
        assert [(edge.kind, edge.process_key) for edge in list_drift(session)] == [
            (UNDECLARED, "AUTOSYS/FIX/patch")
        ]
        assert list_drift(session, process_id=declared) == []
        assert len(list_drift(session, dataset_id=fx)) == 1


def test_an_undeclared_process_is_not_drift(catalog: Catalog) -> None:
    with catalog.writing() as session:
        fx, job = dataset(session, "market.fx_rates"), process(session, "AUTOSYS/NIGHT/load_fx")
        observe_edges(session, [produces(job, fx)], NOON)
        assert list_drift(session) == []


def test_an_undeclared_input_of_a_declared_process_is_drift(catalog: Catalog) -> None:
    with catalog.writing() as session:
        fx, out = dataset(session, "market.fx_rates"), dataset(session, "credit.exposure")
        job = process(session, "floe/risk/exposure")
        declare_edges(session, [produces(job, out)], NOON)
        observe_edges(session, [consumes(fx, job), produces(job, out)], NOON)
        assert [(edge.kind, edge.dataset) for edge in list_drift(session)] == [
            (UNDECLARED, "lake/market.fx_rates")
        ]


def test_a_page_of_drift_reads_a_limited_number_of_edges(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drift, "EDGES_AT_ONCE", 4)
    with catalog.writing() as session:
        out, job = dataset(session, "credit.exposure"), process(session, "floe/risk/exposure")
        declare_edges(session, [produces(job, out)], NOON)
        observe_edges(session, [produces(job, out)], NOON)
        read = [dataset(session, f"in_{index}") for index in range(9)]
        observe_edges(session, [consumes(dataset_id, job) for dataset_id in read], NOON)
    with catalog.reading() as session:
        after: int | None = 0
        pages = []
        while after is not None:
            page, after = page_drift(session, 3, after=after)
            pages.append([edge.edge_id for edge in page])
        assert all(len(page) <= 3 for page in pages)
        assert [edge_id for page in pages for edge_id in page] == [
            edge.edge_id for edge in list_drift(session)
        ]
        assert page_drift(session, 3, process_id=job)[1] is not None
        assert len(page_drift(session, 3, dataset_id=read[0])[0]) == 1
