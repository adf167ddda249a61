"""Processes and their runs."""

import uuid
from datetime import date

import pytest

from floe.catalog.database import Catalog
from floe.catalog.dataset_details import describe_dataset
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
    describe_run,
    finish_run,
    get_run,
    list_inputs,
    list_runs,
    record_inputs,
)
from floe.catalog.tables import RunStep
from floe.catalog.versions import READY, reserve_version
from tests.catalog.graph import start_run

TUESDAY = date(2026, 9, 1)


def new_uuid() -> str:
    return str(uuid.uuid4())


def test_registering_a_process_again_updates_it(catalog: Catalog) -> None:
    with catalog.writing() as session:
        first = register_process(session, "AUTOSYS/EOD/LoadFx", technology="AUTOSYS")
        again = register_process(session, "AUTOSYS/EOD/LoadFx", team="Market Data")
        assert first.process_id == again.process_id
        assert (again.name, again.technology, again.team) == ("LoadFx", "AUTOSYS", "Market Data")


def test_a_process_is_found_by_key_name_and_id(catalog: Catalog) -> None:
    with catalog.writing() as session:
        process_id = register_process(session, "AUTOSYS/EOD/LoadFx").process_id
        for key in ("AUTOSYS/EOD/LoadFx", "LoadFx", str(process_id)):
            assert find_process(session, key).process_id == process_id
        with pytest.raises(ProcessNotFoundError, match="Did you mean 'AUTOSYS/EOD/LoadFx'"):
            find_process(session, "AUTOSYS/EOD/LoadFX2")
        register_process(session, "AUTOSYS/SOD/LoadFx")
        with pytest.raises(AmbiguousProcessError, match="AUTOSYS/SOD/LoadFx"):
            find_process(session, "LoadFx")


def test_processes_are_listed_by_key_after_a_given_key(catalog: Catalog) -> None:
    with catalog.writing() as session:
        for key in ("x/a", "x/b", "x/c"):
            register_process(session, key)
        (process,) = list_processes(session, after="x/a", limit=1)
        assert process.process_key == "x/b"
        assert len(list_processes(session, statuses=["DEPRECATED"])) == 0


def test_a_final_run_status_does_not_change(catalog: Catalog) -> None:
    with catalog.writing() as session:
        run = start_run(session, new_uuid(), register_process(session, "x/a").process_id)
        with pytest.raises(WrongStateError):
            finish_run(session, run, STARTED)
        finish_run(session, run, FAILED)
        ended = run.end_ts
        finish_run(session, run, SUCCESS)
        assert (run.status, run.end_ts) == (FAILED, ended)


def test_runs_are_listed_newest_first_and_filtered_by_process_status_and_date(
    catalog: Catalog,
) -> None:
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
        for runs in (
            list_runs(session, statuses=[SUCCESS]),
            list_runs(session, business_date=TUESDAY),
            list_runs(session, process_id=load, before_id=second.run_id),
        ):
            assert [run.run_id for run in runs] == [first.run_id]
        assert list_runs(session, since=second.start_ts, process_id=load)[0] is second


def test_an_unknown_run_is_rejected(catalog: Catalog) -> None:
    with catalog.reading() as session, pytest.raises(RunNotFoundError):
        get_run(session, new_uuid())


def test_the_input_of_a_run_is_recorded_once(catalog: Catalog) -> None:
    with catalog.writing() as session:
        rates = create_dataset(session, "lake", "market.fx").dataset_id
        version = reserve_version(session, rates, TUESDAY, state=READY)
        run = start_run(session, new_uuid(), register_process(session, "x/a").process_id)
        record_inputs(session, run, [version])
        record_inputs(session, run, [version])
        assert [row.version_tag for row in list_inputs(session, run.run_id)] == ["2026-09-01.1"]


def test_steps_are_returned_in_order(catalog: Catalog) -> None:
    with catalog.writing() as session:
        run = start_run(session, new_uuid(), register_process(session, "x/a").process_id)
        for order, name in ((2, "exposure"), (1, "in_eur")):
            session.add(
                RunStep(run_id=run.run_id, step_name=name, step_order=order, status=STARTED)
            )
        session.flush()
        assert [step.step_name for step in describe_run(session, run.run_uuid).steps] == [
            "in_eur",
            "exposure",
        ]


def test_the_last_successful_run_of_a_dataset_is_the_newest_that_succeeded(
    catalog: Catalog,
) -> None:
    with catalog.writing() as session:
        process_id = register_process(session, "x/load").process_id
        exposure = create_dataset(session, "lake", "credit.exposure")
        last = None
        for status in (SUCCESS, SUCCESS, FAILED):
            run = start_run(session, new_uuid(), process_id)
            version = reserve_version(session, exposure.dataset_id, TUESDAY)
            version.produced_by_run_id = run.run_uuid
            finish_run(session, run, status)
            last = run.run_uuid if status == SUCCESS else last
        unused = create_dataset(session, "lake", "credit.unused")
        detail = describe_dataset(session, exposure.dataset_id)
        assert detail.last_successful_run is not None
        assert detail.last_successful_run.run_uuid == last
        assert describe_dataset(session, unused.dataset_id).last_successful_run is None
