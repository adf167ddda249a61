"""Schemas, SLAs, checks, registrations, leases and the audit log."""

from datetime import date, timedelta

import pytest

from floe import clock
from floe.catalog.audit import list_audit, record_audit
from floe.catalog.checks import FAIL, list_checks, list_results, put_check, record_result
from floe.catalog.database import Catalog
from floe.catalog.datasets import create_dataset
from floe.catalog.errors import RegistrationNotFoundError, WrongStateError
from floe.catalog.leases import acquire_lease, release_lease, renew_lease
from floe.catalog.registrations import (
    approve_registration,
    list_registrations,
    reject_registration,
    submit_registration,
)
from floe.catalog.schemas import Column, diff_schemas, list_columns, store_schemas
from floe.catalog.slas import list_stale_datasets, put_sla
from floe.catalog.tables import Dataset
from floe.catalog.versions import READY, reserve_version

TUESDAY = date(2026, 9, 1)
HOUR = timedelta(hours=1)
RATES = [Column("currency", "string", nullable=False), Column("rate", "decimal(18,6)")]


def test_a_schema_is_stored_once_however_often_it_comes(catalog: Catalog) -> None:
    with catalog.writing() as session:
        first, same = store_schemas(session, [RATES, RATES])
        (again,) = store_schemas(session, [RATES])
        assert first == same == again
        assert list_columns(session, first) == RATES
        assert list_columns(session, None) == []


def test_a_schema_diff_tells_breaking_from_additive() -> None:
    added = diff_schemas(RATES, [*RATES, Column("source", "string")])
    assert (added.added, added.breaking) == (("source",), False)
    changed = diff_schemas(RATES, [Column("currency", "string"), Column("rate", "double")])
    assert changed.loosened == ("currency",)
    assert changed.retyped == (("rate", "decimal(18,6)", "double"),)
    assert changed.breaking
    assert diff_schemas(RATES, RATES[:1]).removed == ("rate",)
    assert diff_schemas(RATES, RATES).empty


def test_a_dataset_older_than_its_window_is_stale(catalog: Catalog) -> None:
    with catalog.writing() as session:
        hourly = put_sla(session, "hourly", sla_window_sec=3600).sla_id
        for name in ("fresh", "old", "never"):
            create_dataset(session, "lake", name, default_sla_id=hourly)
        create_dataset(session, "lake", "unpromised")
        now = clock.now()
        for name, age in (("fresh", HOUR / 2), ("old", 2 * HOUR)):
            dataset = session.query(Dataset).filter_by(name=name).one()
            version = reserve_version(session, dataset.dataset_id, TUESDAY, state=READY)
            version.produced_at = now - age
    with catalog.reading() as session:
        stale = list_stale_datasets(session, now)
        assert [one.full_name for one in stale] == ["lake/never", "lake/old"]
        assert stale[1].last_produced_at == now - 2 * HOUR


def test_an_sla_put_again_is_changed_in_place(catalog: Catalog) -> None:
    with catalog.writing() as session:
        first = put_sla(session, "rates", due="06:30", zone="Europe/London")
        again = put_sla(session, "rates", due="07:00")
        assert first.sla_id == again.sla_id
        assert (again.due, again.zone) == ("07:00", "Europe/London")


def test_a_check_and_its_verdicts_are_kept(catalog: Catalog) -> None:
    with catalog.writing() as session:
        dataset = create_dataset(session, "lake", "credit.exposure").dataset_id
        check = put_check(session, dataset, "no_negative", kind="sql", severity="REJECT")
        put_check(session, dataset, "retired", kind="sql", active=False)
        version = reserve_version(session, dataset, TUESDAY)
        record_result(
            session, check, FAIL, dataset_version_id=version.dataset_version_id, failed_rows=3
        )
        assert [one.name for one in list_checks(session, dataset)] == ["no_negative"]
        assert [one.failed_rows for one in list_results(session, dataset)] == [3]
        tag = version.dataset_version_id
        assert len(list_results(session, dataset, dataset_version_id=tag)) == 1
        assert list_results(session, dataset, dataset_version_id=tag + 1) == []


def test_approving_a_registration_activates_its_dataset(catalog: Catalog) -> None:
    with catalog.writing() as session:
        asked = submit_registration(session, "lake", "market.curves", submitted_by="ann")
        assert session.get_one(Dataset, asked.dataset_id).status == "DRAFT"
        approve_registration(session, asked.reg_id, reviewer="steward", comment="fine")
        assert session.get_one(Dataset, asked.dataset_id).status == "ACTIVE"
        assert list_registrations(session) == []
        assert [one.reviewer for one in list_registrations(session, status=None)] == ["steward"]


def test_a_registration_is_decided_once(catalog: Catalog) -> None:
    with catalog.writing() as session:
        asked = submit_registration(session, "lake", "market.curves", submitted_by="ann")
        reject_registration(session, asked.reg_id, reviewer="steward")
        assert session.get_one(Dataset, asked.dataset_id).status == "DEPRECATED"
        with pytest.raises(WrongStateError, match="is REJECTED and cannot become APPROVED"):
            approve_registration(session, asked.reg_id, reviewer="steward")
        with pytest.raises(RegistrationNotFoundError):
            approve_registration(session, 4711, reviewer="steward")


def test_one_holder_at_a_time_has_a_lease(catalog: Catalog) -> None:
    with catalog.writing() as session:
        fence = acquire_lease(session, "table:credit.exposure", "run 1", HOUR)
        assert fence == 1
        assert acquire_lease(session, "table:credit.exposure", "run 1", HOUR) == 1
    with catalog.writing() as session:
        assert acquire_lease(session, "table:credit.exposure", "run 2", HOUR) is None
        release_lease(session, "table:credit.exposure", "run 1", fence)
        assert acquire_lease(session, "table:credit.exposure", "run 2", HOUR) == 2


def test_an_ended_lease_is_taken_over_and_its_old_holder_learns_it(catalog: Catalog) -> None:
    with catalog.writing() as session:
        old = acquire_lease(session, "monitor", "a", timedelta(seconds=-1))
        assert old is not None
        new = acquire_lease(session, "monitor", "b", HOUR)
        assert new is not None
        assert new > old
        assert not renew_lease(session, "monitor", "a", old, HOUR)
        assert renew_lease(session, "monitor", "b", new, HOUR)


def test_the_audit_log_has_who_what_before_and_after(catalog: Catalog) -> None:
    with catalog.writing() as session:
        for state in ("ACTIVE", "DEPRECATED"):
            record_audit(
                session, "ann", "set_status", "dataset", "lake/x", before={}, after={"s": state}
            )
    with catalog.reading() as session:
        newest, oldest = list_audit(session, object_type="dataset", object_key="lake/x")
        assert (newest.actor, newest.after_json) == ("ann", {"s": "DEPRECATED"})
        assert list_audit(session, before_id=newest.audit_id) == [oldest]
