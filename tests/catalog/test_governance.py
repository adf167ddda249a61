"""Schemas, SLAs, checks, registrations, leases and the audit log."""

from datetime import date, timedelta
from typing import Unpack

import pytest
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.audit import list_audit, record_audit
from floe.catalog.checks import FAIL, list_checks, page_results, put_check, record_result
from floe.catalog.database import Catalog
from floe.catalog.datasets import DatasetFields, create_dataset, set_status, update_dataset
from floe.catalog.errors import (
    DatasetExistsError,
    RegistrationNotFoundError,
    RegistrationPendingError,
    WrongStateError,
)
from floe.catalog.leases import acquire_lease, release_lease, renew_lease
from floe.catalog.registrations import (
    PENDING,
    approve_registration,
    page_registrations,
    reject_registration,
    submit_registration,
)
from floe.catalog.schemas import Column, diff_schemas, list_columns, store_schemas
from floe.catalog.slas import list_stale_datasets
from floe.catalog.tables import Dataset, DatasetRegistration, Project
from floe.catalog.versions import READY, reserve_version
from tests.catalog.graph import sla

TUESDAY = date(2026, 9, 1)
HOUR = timedelta(hours=1)
RATES = [Column("currency", "string", nullable=False), Column("rate", "decimal(18,6)")]


def test_the_same_schema_is_stored_once(catalog: Catalog) -> None:
    with catalog.writing() as session:
        first, same = store_schemas(session, [RATES, RATES])
        (again,) = store_schemas(session, [RATES])
        assert first == same == again
        assert list_columns(session, first) == RATES
        assert list_columns(session, None) == []


def test_a_schema_diff_separates_breaking_from_additive_changes() -> None:
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
        hourly = sla(session, "hourly", sla_window_sec=3600)
        for name in ("fresh", "old", "never"):
            create_dataset(session, "lake", name, default_sla_id=hourly)
        create_dataset(session, "lake", "without_sla")
        now = clock.now()
        for name, age in (("fresh", HOUR / 2), ("old", 2 * HOUR)):
            dataset = session.query(Dataset).filter_by(name=name).one()
            version = reserve_version(session, dataset.dataset_id, TUESDAY, state=READY)
            version.produced_at = now - age
    with catalog.reading() as session:
        stale = list_stale_datasets(session, now)
        assert [dataset.full_name for dataset in stale] == ["lake/never", "lake/old"]
        assert stale[1].last_produced_at == now - 2 * HOUR
        assert list_stale_datasets(session, now, limit=1) == stale[:1]
        assert list_stale_datasets(session, now, after="lake/never", limit=1) == stale[1:]


def test_a_check_and_its_results_are_stored(catalog: Catalog) -> None:
    with catalog.writing() as session:
        dataset = create_dataset(session, "lake", "credit.exposure").dataset_id
        check = put_check(session, dataset, "no_negative", kind="sql", severity="REJECT")
        put_check(session, dataset, "retired", kind="sql", active=False)
        version = reserve_version(session, dataset, TUESDAY)
        record_result(
            session, check, FAIL, dataset_version_id=version.dataset_version_id, failed_rows=3
        )
        assert [row.name for row in list_checks(session, dataset)] == ["no_negative"]
        assert [row.failed_rows for row in page_results(session, dataset)] == [3]
        version_id = version.dataset_version_id
        assert len(page_results(session, dataset, dataset_version_id=version_id)) == 1
        assert page_results(session, dataset, dataset_version_id=version_id + 1) == []


def test_approving_a_registration_activates_its_dataset(catalog: Catalog) -> None:
    with catalog.writing() as session:
        requested = submit_registration(session, "lake", "market.curves", submitted_by="ann")
        assert session.get_one(Dataset, requested.dataset_id).status == "DRAFT"
        approve_registration(session, requested.reg_id, reviewer="steward", comment="fine")
        assert session.get_one(Dataset, requested.dataset_id).status == "ACTIVE"
        assert page_registrations(session, status=PENDING) == []
        assert [row.reviewer for row in page_registrations(session)] == ["steward"]


def test_a_rejected_dataset_can_be_requested_again(catalog: Catalog) -> None:
    with catalog.writing() as session:
        first = request(session, "market.curves", owner_team="Markets", category="rates")
        reject_registration(session, first.reg_id, reviewer="steward", comment="Whose is it?")
        again = request(session, "market.curves", owner_team="Market Data", category=None)
        dataset = session.get_one(Dataset, again.dataset_id)
        assert (again.dataset_id, dataset.status) == (first.dataset_id, "DRAFT")
        assert (dataset.owner_team, dataset.category) == ("Market Data", None)
        with pytest.raises(RegistrationPendingError, match="already requested"):
            request(session, "market.curves")
        approve_registration(session, again.reg_id, reviewer="steward")
        assert dataset.status == "ACTIVE"
        with pytest.raises(DatasetExistsError, match="already registered"):
            request(session, "market.curves")


def test_a_dataset_known_from_events_can_be_requested(catalog: Catalog) -> None:
    with catalog.writing() as session:
        observed = create_dataset(session, "lake", "fx", owner_team="Jobs", description="rates")
        requested = request(session, "fx", owner_team="Market Data", description=None)
        assert (observed.status, observed.owner_team, observed.curated) == ("ACTIVE", "Jobs", False)
        with pytest.raises(RegistrationPendingError):
            request(session, "fx")
        approve_registration(session, requested.reg_id, reviewer="steward")
        assert (observed.owner_team, observed.description) == ("Market Data", "rates")
        assert (observed.status, observed.curated) == ("ACTIVE", True)
        (entry,) = list_audit(session, object_type="DATASET", object_key="lake/fx")
        assert (entry.actor, entry.action) == ("steward", "dataset.update")
        assert entry.before_json == {"owner_team": "Jobs", "curated": False}
        assert entry.after_json == {"owner_team": "Market Data", "curated": True}


def test_a_rejected_request_does_not_change_a_dataset_known_from_events(catalog: Catalog) -> None:
    with catalog.writing() as session:
        observed = create_dataset(session, "lake", "fx", owner_team="Jobs")
        for team in ("Market Data", "Credit Risk"):
            requested = request(session, "fx", owner_team=team)
            reject_registration(session, requested.reg_id, reviewer="steward")
        assert (observed.status, observed.owner_team, observed.curated) == ("ACTIVE", "Jobs", False)
        assert list_audit(session, object_type="DATASET") == []


def test_approval_keeps_what_a_steward_corrected_in_a_draft(catalog: Catalog) -> None:
    with catalog.writing() as session:
        requested = request(session, "market.curves", owner_team="Markts")
        dataset = session.get_one(Dataset, requested.dataset_id)
        update_dataset(session, dataset, owner_team="Markets", curated=True)
        approve_registration(session, requested.reg_id, reviewer="steward")
        assert (dataset.owner_team, dataset.status) == ("Markets", "ACTIVE")


def test_a_dataset_that_a_project_declares_cannot_be_requested(catalog: Catalog) -> None:
    with catalog.writing() as session:
        project = Project(name="risk", timezone="UTC", content_hash="x", created_at=clock.now())
        session.add(project)
        session.flush()
        requested = request(session, "fx", owner_team="Market Data")
        dataset = session.get_one(Dataset, requested.dataset_id)
        declared: DatasetFields = {"project_id": project.project_id, "owner_team": "Risk"}
        update_dataset(session, dataset, **declared)
        set_status(session, dataset, "ACTIVE")
        reject_registration(session, requested.reg_id, reviewer="steward")
        assert (dataset.status, dataset.owner_team) == ("ACTIVE", "Risk")
        with pytest.raises(DatasetExistsError, match="already registered"):
            request(session, "fx")


def request(session: Session, name: str, **values: Unpack[DatasetFields]) -> DatasetRegistration:
    return submit_registration(session, "lake", name, submitted_by="ann", **values)


def test_a_registration_is_decided_once(catalog: Catalog) -> None:
    with catalog.writing() as session:
        requested = submit_registration(session, "lake", "market.curves", submitted_by="ann")
        reject_registration(session, requested.reg_id, reviewer="steward")
        assert session.get_one(Dataset, requested.dataset_id).status == "DEPRECATED"
        with pytest.raises(WrongStateError, match="is REJECTED and cannot become APPROVED"):
            approve_registration(session, requested.reg_id, reviewer="steward")
        with pytest.raises(RegistrationNotFoundError):
            approve_registration(session, 4711, reviewer="steward")


def test_a_lease_has_one_holder_at_a_time(catalog: Catalog) -> None:
    with catalog.writing() as session:
        fence = acquire_lease(session, "table:credit.exposure", "run 1", HOUR)
        assert fence == 1
        assert acquire_lease(session, "table:credit.exposure", "run 1", HOUR) == 1
    with catalog.writing() as session:
        assert acquire_lease(session, "table:credit.exposure", "run 2", HOUR) is None
        release_lease(session, "table:credit.exposure", "run 1", fence)
        assert acquire_lease(session, "table:credit.exposure", "run 2", HOUR) == 2


def test_an_expired_lease_is_taken_over_and_its_old_holder_cannot_renew_it(
    catalog: Catalog,
) -> None:
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
