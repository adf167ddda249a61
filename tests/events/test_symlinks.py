"""Symlinks: an event joins undeclared datasets; a steward decides on the rest."""

import json
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import event as sqlalchemy_event
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.audit import list_audit
from floe.catalog.database import Catalog
from floe.catalog.datasets import create_dataset, find_dataset
from floe.catalog.drift import NotAcceptableError, accept_claim, dismiss_claim, list_drift_claims
from floe.catalog.errors import WrongStateError
from floe.catalog.joins.joining import join_datasets
from floe.catalog.joins.splitting import split_dataset
from floe.catalog.recording import Recorder, record_group
from floe.catalog.tables import Dataset, DatasetAlias, Project
from floe.catalog.version_queries import get_version_by_id, list_versions
from floe.catalog.versions import EXTERNAL, READY, WRITTEN, reserve_version, retract_version
from floe.events.ingest import EventDoor, read_claim
from tests.events.factory import FOREVER, LAKE, NOON, at, event, run_id, written

EXPOSURE, REPORT = f"{LAKE}/credit.exposure", f"{LAKE}/credit.report"


def record(catalog: Catalog, *bodies: bytes, own: bool = False) -> None:
    with closing(Recorder(catalog.store, own=own)) as recorder:
        claims = [read_claim(body, retention=FOREVER) for body in bodies]
        assert record_group(catalog, recorder, claims, clock.now()) == {}


def linking(name: str, *others: tuple[str, str], run: str = "link", minutes: float = 9) -> bytes:
    """An event that wrote a dataset with these symlinks."""
    body = json.loads(event("COMPLETE", at(minutes), run, outputs=[written(name)]))
    identifiers = [{"namespace": namespace, "name": other} for namespace, other in others]
    body["outputs"][0]["facets"]["symlinks"] = {"identifiers": identifiers}
    return json.dumps(body).encode()


def declare(session: Session, name: str) -> Dataset:
    project = session.scalar(select(Project))
    if project is None:
        project = Project(name="risk", timezone="UTC", content_hash="x", created_at=NOON)
        session.add(project)
        session.flush()
    return create_dataset(session, LAKE, name, project_id=project.project_id)


ANSWERED_FOR: dict[str, Any] = {
    "declared": declare,
    "curated": lambda session, name: create_dataset(session, LAKE, name, curated=True),
    "written by floe": lambda session, name: create_dataset(session, LAKE, name, floe_writes=True),
}


@pytest.mark.parametrize("second", ANSWERED_FOR)
@pytest.mark.parametrize("first", ANSWERED_FOR)
def test_two_declared_or_curated_datasets_are_not_joined(
    catalog: Catalog, first: str, second: str
) -> None:
    with catalog.writing() as session:
        ANSWERED_FOR[first](session, "credit.exposure")
        ANSWERED_FOR[second](session, "credit.report")
    record(catalog, linking("credit.report", (LAKE, "credit.exposure")))
    with catalog.reading() as session:
        names = {find_dataset(session, name).full_name for name in (EXPOSURE, REPORT)}
        assert names == {EXPOSURE, REPORT}
        claims = [claim for claim in list_drift_claims(session) if claim.kind == "SAME_DATASET"]
        assert [(claim.dataset, claim.subject) for claim in claims] == [(EXPOSURE, REPORT)]
        assert "AUTOSYS/exposure" in claims[0].detail["from"]
        assert list_audit(session, object_type="DATASET") == []


def test_a_third_name_does_not_join_two_declared_datasets(catalog: Catalog) -> None:
    with catalog.writing() as session:
        declare(session, "credit.exposure")
        declare(session, "credit.report")
    both = (LAKE, "credit.exposure"), (LAKE, "credit.report")
    record(catalog, linking("copy", *both))
    with catalog.reading() as session:
        assert session.scalar(select(func.count()).select_from(Dataset)) == 2
        assert len(list_drift_claims(session)) == 1


def test_versions_of_a_declared_dataset_are_not_superseded_by_a_claim(catalog: Catalog) -> None:
    with catalog.writing() as session:
        declare(session, "credit.exposure")
        declare(session, "credit.report")
    record(catalog, event("COMPLETE", at(0), "own", outputs=[written("credit.exposure")]))
    record(catalog, linking("credit.report", (LAKE, "credit.exposure")))
    with catalog.reading() as session:
        for name in (EXPOSURE, REPORT):
            versions = list_versions(session, find_dataset(session, name).dataset_id)
            assert [version.state for version in versions] == [READY]


def test_a_foreign_version_under_another_name_does_not_replace_floes_own(
    catalog: Catalog,
) -> None:
    with catalog.writing() as session:
        create_dataset(session, LAKE, "credit.exposure", floe_writes=True)
    record(catalog, event("COMPLETE", at(0), "x", outputs=[written("copy")]))
    record(catalog, linking("copy", (LAKE, "credit.exposure")))
    with catalog.reading() as session:
        dataset = find_dataset(session, "copy")
        assert dataset.full_name == EXPOSURE
        assert [version.state for version in list_versions(session, dataset.dataset_id)] == [
            EXTERNAL
        ]
    with catalog.writing() as session:
        restored, _ = split_dataset(session, f"{LAKE}/copy", actor="ann")
        assert [version.state for version in list_versions(session, restored.dataset_id)] == [READY]


def test_a_joined_version_that_is_newer_does_not_replace_what_floe_writes_later(
    catalog: Catalog,
) -> None:
    with catalog.writing() as session:
        create_dataset(session, LAKE, "credit.exposure", floe_writes=True)
    record(catalog, event("COMPLETE", at(600), "x", outputs=[written("copy")]))
    record(catalog, linking("copy", (LAKE, "credit.exposure"), minutes=601))
    run = run_id("own")
    with catalog.writing() as session:
        exposure = find_dataset(session, EXPOSURE)
        own = reserve_version(
            session, exposure.dataset_id, NOON.date(), state=READY, produced_by_run_id=run
        )
        own.produced_at = at(0)
    report = event("COMPLETE", at(0), "own", outputs=[written("credit.exposure")])
    record(catalog, report, own=True)
    with catalog.writing() as session:
        own = get_version_by_id(session, own.dataset_version_id)
        assert own.state == READY
        assert retract_version(session, own, reason="wrong") is None


def test_a_report_of_floes_own_run_does_not_replace_its_version_by_an_older_foreign_one(
    catalog: Catalog,
) -> None:
    record(catalog, event("COMPLETE", at(600), "x", outputs=[written("credit.exposure")]))
    with catalog.writing() as session:
        own = reserve_version(
            session,
            find_dataset(session, EXPOSURE).dataset_id,
            NOON.date(),
            state=READY,
            produced_by_run_id=run_id("own"),
        )
        own.produced_at = at(0)
    report = event("COMPLETE", at(0), "own", outputs=[written("credit.exposure")])
    record(catalog, report, own=True)
    with catalog.reading() as session:
        assert get_version_by_id(session, own.dataset_version_id).state == READY


def test_joined_versions_are_validated_where_announced_ones_are(catalog: Catalog) -> None:
    with catalog.writing() as session:
        feed = declare(session, "credit.collateral")
        feed.needs_validation = True
        received = reserve_version(session, feed.dataset_id, NOON.date(), state=READY)
        received.produced_at = at(0)
    record(catalog, event("COMPLETE", at(600), "x", outputs=[written("copy")]))
    link = linking("copy", (LAKE, "credit.collateral"), minutes=601)
    record(catalog, link.replace(b'"COMPLETE"', b'"START"'))
    with catalog.writing() as session:
        versions = list_versions(session, find_dataset(session, "copy").dataset_id)
        assert sorted(version.state for version in versions) == [READY, WRITTEN]
        assert get_version_by_id(session, received.dataset_version_id).state == READY
        restored, _ = split_dataset(session, f"{LAKE}/copy", actor="ann")
        assert [version.state for version in list_versions(session, restored.dataset_id)] == [READY]


def test_a_join_by_an_event_names_the_event(catalog: Catalog) -> None:
    record(catalog, event("COMPLETE", at(0), "x", outputs=[written("copy")]))
    record(catalog, event("COMPLETE", at(1), "y", outputs=[written("credit.exposure")]))
    record(catalog, linking("copy", (LAKE, "credit.exposure")))
    with catalog.reading() as session:
        (entry,) = list_audit(session, object_type="DATASET")
        assert (entry.actor, entry.action) == ("events", "dataset.join")
        assert entry.reason is not None
        assert "job AUTOSYS/exposure, run " in entry.reason


def test_accepting_a_claim_joins_the_two_datasets(catalog: Catalog) -> None:
    with catalog.writing() as session:
        declare(session, "credit.exposure")
        declare(session, "credit.report")
    record(catalog, linking("credit.report", (LAKE, "credit.exposure")))
    with catalog.writing() as session:
        (claim,) = list_drift_claims(session)
        assert accept_claim(session, claim.claim_id, actor="ann", comment="yes") == EXPOSURE
    with catalog.reading() as session:
        assert find_dataset(session, REPORT).full_name == EXPOSURE
        assert list_drift_claims(session, status=None) == []
        actions = [(entry.actor, entry.action) for entry in list_audit(session)]
        assert actions == [("ann", "dataset.join"), ("ann", "drift.accept")]


def test_a_dismissed_claim_stays_dismissed(catalog: Catalog) -> None:
    with catalog.writing() as session:
        declare(session, "credit.exposure")
        declare(session, "credit.report")
    record(catalog, linking("credit.report", (LAKE, "credit.exposure")))
    with catalog.writing() as session:
        (claim,) = list_drift_claims(session)
        dismiss_claim(session, claim.claim_id, actor="ann", comment="a copy")
        with pytest.raises(WrongStateError):
            accept_claim(session, claim.claim_id, actor="ann")
    record(catalog, linking("credit.report", (LAKE, "credit.exposure"), run="again", minutes=99))
    with catalog.reading() as session:
        assert list_drift_claims(session) == []
        (claim,) = list_drift_claims(session, status=None)
        assert (claim.status, claim.decided_by, claim.comment) == ("DISMISSED", "ann", "a copy")
        assert claim.last_seen == at(99)


def test_a_foreign_version_cannot_be_accepted(catalog: Catalog) -> None:
    with catalog.writing() as session:
        create_dataset(session, LAKE, "credit.exposure", floe_writes=True)
    record(catalog, event("COMPLETE", at(0), outputs=[written("credit.exposure")]))
    with catalog.writing() as session:
        (claim,) = list_drift_claims(session)
        with pytest.raises(NotAcceptableError):
            accept_claim(session, claim.claim_id, actor="ann")
        dismiss_claim(session, claim.claim_id, actor="ann")


def test_split_datasets_are_not_joined_again_by_the_same_symlink(catalog: Catalog) -> None:
    link = linking("copy", (LAKE, "credit.exposure"))
    record(catalog, event("COMPLETE", at(0), "x", outputs=[written("copy")]))
    record(catalog, event("COMPLETE", at(1), "y", outputs=[written("credit.exposure")]))
    record(catalog, link)
    with catalog.writing() as session:
        gone, kept = split_dataset(session, EXPOSURE, actor="ann")
        assert (gone.full_name, kept.full_name) == (EXPOSURE, f"{LAKE}/copy")
    record(catalog, link, linking("copy", (LAKE, "credit.exposure"), run="later", minutes=10))
    with catalog.reading() as session:
        assert find_dataset(session, EXPOSURE).full_name == EXPOSURE
        (claim,) = list_drift_claims(session)
        assert claim.kind == "SAME_DATASET"
    with catalog.writing() as session:
        accept_claim(session, claim.claim_id, actor="ann")
        assert find_dataset(session, EXPOSURE).full_name == f"{LAKE}/copy"


def test_a_running_door_notices_joins_and_splits(catalog: Catalog) -> None:
    def send(door: EventDoor, *bodies: bytes) -> None:
        claims = [read_claim(body, retention=FOREVER) for body in bodies]
        assert door.submit(claims).result(timeout=30) == {}

    def count(name: str) -> int:
        with catalog.reading() as session:
            return len(list_versions(session, find_dataset(session, name).dataset_id))

    with closing(EventDoor(catalog)) as door:
        send(door, event("COMPLETE", at(0), "x", outputs=[written("copy")]))
        send(door, event("COMPLETE", at(1), "y", outputs=[written("credit.exposure")]))
        send(door, linking("copy", (LAKE, "credit.exposure")))
        with catalog.writing() as session:
            split_dataset(session, EXPOSURE, actor="ann")
        send(door, event("COMPLETE", at(20), "z", outputs=[written("credit.exposure")]))
        assert count(EXPOSURE) == 2
        with catalog.writing() as session:
            copy, exposure = (find_dataset(session, name) for name in ("copy", EXPOSURE))
            join_datasets(session, copy, exposure, actor="ann")
        send(door, event("COMPLETE", at(30), "w", outputs=[written("credit.exposure")]))
        assert count(EXPOSURE) == count("copy") == 5


def statements(catalog: Catalog, work: Any) -> int:
    seen: list[str] = []

    def note(_conn: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        seen.append(statement)

    sqlalchemy_event.listen(catalog.engine, "before_cursor_execute", note)
    try:
        work()
    finally:
        sqlalchemy_event.remove(catalog.engine, "before_cursor_execute", note)
    return len(seen)


def known(prefix: str, count: int) -> Sequence[bytes]:
    return [
        event("COMPLETE", at(0), f"{prefix}{n}", outputs=[written(f"{prefix}{n}")])
        for n in range(count)
    ]


def test_a_hundred_joins_take_as_many_statements_as_two(catalog: Catalog) -> None:
    few, many = [(LAKE, f"few{n}") for n in range(2)], [(LAKE, f"many{n}") for n in range(100)]
    record(catalog, *known("few", 2), *known("many", 100))
    spent = [
        statements(catalog, lambda: record(catalog, linking("one", *few))),
        statements(catalog, lambda: record(catalog, linking("two", *many, run="two"))),
    ]
    assert spent[1] <= spent[0]
    with catalog.reading() as session:
        assert session.scalar(select(func.count()).select_from(Dataset)) == 2


def test_the_number_of_statements_does_not_depend_on_the_number_of_new_names(
    catalog: Catalog,
) -> None:
    few, many = [("file", f"/few/{n}") for n in range(2)], [("file", f"/{n}") for n in range(100)]
    spent = [
        statements(catalog, lambda: record(catalog, linking("one", *few))),
        statements(catalog, lambda: record(catalog, linking("two", *many, run="two"))),
    ]
    assert spent[1] <= spent[0]
    with catalog.reading() as session:
        assert session.scalar(select(func.count()).select_from(DatasetAlias)) == 102
