"""Processes and their runs."""

import uuid
from datetime import date

import pytest

from floe.catalog.database import Catalog
from floe.catalog.datasets import create_dataset
from floe.catalog.errors import (
    AmbiguousProcessError,
    ProcessNotFoundError,
    RunNotFoundError,
    WrongStateError,
)
from floe.catalog.processes import find_process, list_processes, register_process
from floe.catalog.runs import (
    FAILED,
    STARTED,
    SUCCESS,
    finish_run,
    get_run,
    last_successful_run,
    list_inputs,
    list_runs,
    list_steps,
    record_inputs,
    start_run,
)
from floe.catalog.tables import RunStep
from floe.catalog.versions import READY, reserve_version

TUESDAY = date(2026, 9, 1)


def new_uuid() -> str:
    return str(uuid.uuid4())


def test_a_process_is_registered_once_and_then_changed(catalog: Catalog) -> None:
    with catalog.writing() as session:
        first = register_process(session, "AUTOSYS/EOD/LoadFx", technology="AUTOSYS")
        again = register_process(session, "AUTOSYS/EOD/LoadFx", team="Market Data")
        assert first.process_id == again.process_id
        assert (again.name, again.technology, again.team) == ("LoadFx", "AUTOSYS", "Market Data")


def test_a_process_is_found_by_key_name_and_number(catalog: Catalog) -> None:
    with catalog.writing() as session:
        number = register_process(session, "AUTOSYS/EOD/LoadFx").process_id
        for key in ("AUTOSYS/EOD/LoadFx", "LoadFx", str(number)):
            assert find_process(session, key).process_id == number
        with pytest.raises(ProcessNotFoundError, match="Did you mean 'AUTOSYS/EOD/LoadFx'"):
            find_process(session, "AUTOSYS/EOD/LoadFX2")
        register_process(session, "AUTOSYS/SOD/LoadFx")
        with pytest.raises(AmbiguousProcessError, match="AUTOSYS/SOD/LoadFx"):
            find_process(session, "LoadFx")


def test_processes_list_by_key_from_after_one_on(catalog: Catalog) -> None:
    with catalog.writing() as session:
        for key in ("x/a", "x/b", "x/c"):
            register_process(session, key)
        assert [one.process_key for one in list_processes(session, after="x/a", limit=1)] == ["x/b"]
        assert len(list_processes(session, statuses=["DEPRECATED"])) == 0


def test_the_same_run_started_twice_is_one_run(catalog: Catalog) -> None:
    run_uuid = new_uuid()
    with catalog.writing() as session:
        process = register_process(session, "x/a")
        first = start_run(session, run_uuid, process.process_id, business_date=TUESDAY)
        finish_run(session, first, SUCCESS)
        again = start_run(session, run_uuid, process.process_id)
        assert (again.run_id, again.status) == (first.run_id, SUCCESS)


def test_an_ended_run_keeps_its_end(catalog: Catalog) -> None:
    with catalog.writing() as session:
        run = start_run(session, new_uuid(), register_process(session, "x/a").process_id)
        with pytest.raises(WrongStateError):
            finish_run(session, run, STARTED)
        finish_run(session, run, FAILED)
        ended = run.end_ts
        finish_run(session, run, SUCCESS)
        assert (run.status, run.end_ts) == (FAILED, ended)


def test_runs_list_the_newest_first_by_process_state_and_date(catalog: Catalog) -> None:
    with catalog.writing() as session:
        load = register_process(session, "x/load").process_id
        send = register_process(session, "x/send").process_id
        first = start_run(session, new_uuid(), load, business_date=TUESDAY)
        finish_run(session, first, SUCCESS)
        second = start_run(session, new_uuid(), load)
        start_run(session, new_uuid(), send)
        assert [run.run_id for run in list_runs(session, process_id=load)] == [
            second.run_id,
            first.run_id,
        ]
        for found in (
            list_runs(session, statuses=[SUCCESS]),
            list_runs(session, business_date=TUESDAY),
            list_runs(session, process_id=load, before_id=second.run_id),
        ):
            assert [run.run_id for run in found] == [first.run_id]
        assert list_runs(session, since=second.start_ts, process_id=load)[0] is second


def test_an_unknown_run_is_refused(catalog: Catalog) -> None:
    with catalog.reading() as session, pytest.raises(RunNotFoundError):
        get_run(session, new_uuid())


def test_the_last_successful_run_of_a_dataset_is_the_newest_that_succeeded(
    catalog: Catalog,
) -> None:
    with catalog.writing() as session:
        exposure = create_dataset(session, "lake", "credit.exposure").dataset_id
        process = register_process(session, "x/exposure").process_id
        good, bad = new_uuid(), new_uuid()
        finish_run(session, start_run(session, good, process), SUCCESS)
        finish_run(session, start_run(session, bad, process), FAILED)
        for producer in (good, bad):
            reserve_version(session, exposure, TUESDAY, state=READY, produced_by_run_id=producer)
        last = last_successful_run(session, "lake/credit.exposure")
        assert last is not None
        assert last.run_uuid == good
        assert last_successful_run(session, "lake/nothing") is None


def test_what_a_run_read_is_written_once(catalog: Catalog) -> None:
    with catalog.writing() as session:
        rates = create_dataset(session, "lake", "market.fx").dataset_id
        version = reserve_version(session, rates, TUESDAY, state=READY)
        run = start_run(session, new_uuid(), register_process(session, "x/a").process_id)
        record_inputs(session, run, [version])
        record_inputs(session, run, [version])
        assert [row.version_tag for row in list_inputs(session, run.run_id)] == ["2026-09-01.1"]


def test_steps_come_in_their_order(catalog: Catalog) -> None:
    with catalog.writing() as session:
        run = start_run(session, new_uuid(), register_process(session, "x/a").process_id)
        for order, name in ((2, "exposure"), (1, "in_eur")):
            session.add(
                RunStep(run_id=run.run_id, step_name=name, step_order=order, status=STARTED)
            )
        session.flush()
        assert [step.step_name for step in list_steps(session, run.run_id)] == [
            "in_eur",
            "exposure",
        ]
