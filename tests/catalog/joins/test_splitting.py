"""A join can be undone: both datasets are as they were."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from floe.catalog.audit import list_audit
from floe.catalog.checks import FAIL, put_check, record_result
from floe.catalog.database import Catalog
from floe.catalog.datasets import add_alias, create_dataset, find_dataset, replace_tags
from floe.catalog.edges import consumes, produces
from floe.catalog.joins.joining import join_datasets
from floe.catalog.joins.splitting import JoinNotFoundError, LaterJoinError, split_dataset
from floe.catalog.processes import register_process
from floe.catalog.search import search_datasets
from floe.catalog.tables import (
    ColumnEdge,
    ColumnSighting,
    Dataset,
    ObservedFacet,
    ProcessRun,
    RunInput,
    SchemaSighting,
)
from floe.catalog.version_queries import list_versions
from floe.catalog.versions import READY, SUPERSEDED, advance_version, reserve_version
from tests.catalog.graph import observe_edges
from tests.events.state import state_of

NOON = datetime(2026, 9, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
TUESDAY = date(2026, 9, 1)
TABLE, PATH = "lake/credit.exposure", "s3://bucket/exposure"
# What the tests of events do not look at.
MORE = {
    "tags": "SELECT full_name, tag FROM dataset_tag JOIN dataset USING (dataset_id)",
    "checks": "SELECT full_name, q.name FROM quality_check_def q JOIN dataset USING (dataset_id)",
    "results": (
        "SELECT full_name, q.name, v.version_tag, r.status FROM quality_check_result r "
        "JOIN quality_check_def q USING (qdef_id) JOIN dataset USING (dataset_id) "
        "LEFT JOIN dataset_version v USING (dataset_version_id)"
    ),
    "version tags": (
        "SELECT full_name, version_tag, seq, state FROM dataset_version "
        "JOIN dataset USING (dataset_id)"
    ),
    "history": (
        "SELECT full_name, event_type, v.version_tag FROM dataset_event e "
        "JOIN dataset d ON d.dataset_id = e.dataset_id "
        "LEFT JOIN dataset_version v USING (dataset_version_id) "
        "WHERE event_type NOT IN ('JOINED', 'SPLIT')"
    ),
    "facets": (
        "SELECT full_name, facet, body, seen_at FROM observed_facet "
        "JOIN dataset ON dataset_id = owner_id WHERE owner_type = 'DATASET'"
    ),
    "names": "SELECT full_name, floe_writes, curated, description FROM dataset",
}


def state(catalog: Catalog) -> dict[str, Any]:
    with catalog.reading() as session:
        more = {
            name: sorted(tuple(map(str, row)) for row in session.execute(text(query)))
            for name, query in MORE.items()
        }
    return {**state_of(catalog), **more}


def fill(session: Session) -> None:
    """Two datasets that have everything a dataset can have, some of it the same."""
    table = create_dataset(session, "lake", "credit.exposure", description="declared", curated=True)
    path = create_dataset(session, "s3://bucket", "exposure", description="seen")
    process = register_process(session, "x/writer").process_id
    reader = register_process(session, "x/reader").process_id
    other = create_dataset(session, "lake", "market.fx").dataset_id
    runs = [
        ProcessRun(
            run_uuid=f"00000000-0000-4000-8000-00000000000{number}", process_id=reader,
            status="SUCCESS", attempt=1, historical=False, saw_success=True, saw_failure=False,
            created_at=NOON,
        )
        for number in (1, 2)
    ]  # fmt: skip
    session.add_all(runs)
    session.flush()
    for place, dataset in enumerate((table, path)):
        number, seen = dataset.dataset_id, NOON + place * HOUR
        own = [reserve_version(session, number, TUESDAY, state=READY) for _ in "ab"][-1]
        named = reserve_version(session, number, date(2026, 9, 2 + place), state=READY)
        named.version_tag = "snapshot-77"
        own.produced_at = named.produced_at = seen
        observe_edges(session, [consumes(number, reader)], seen)
        observe_edges(session, [produces(process, number)][: 1 + place], seen)
        replace_tags(session, number, ["daily", f"only {place}"])
        for name in ("no_negative", f"only_{place}"):
            check = put_check(session, number, name, kind="sql")
            record_result(session, check, FAIL, dataset_version_id=named.dataset_version_id)
        add_alias(session, number, "file", f"/lake/{place}")
        sighting = {"dataset_id": number, "first_seen": seen, "last_seen": seen}
        session.add(SchemaSighting(schema_hash="same", **sighting))
        session.add(SchemaSighting(schema_hash=f"own {place}", **sighting))
        session.add(ColumnSighting(process_id=process, lineage_hash="h", **sighting))
        column = {"source_column": "a", "target_column": "b", "process_id": process}
        column |= {"kind": "DIRECT", "lineage_hash": "h"}
        for source, target in ((other, number), (number, other), (number, number)):
            session.add(ColumnEdge(source_dataset_id=source, target_dataset_id=target, **column))
        for run in runs[: 1 + place]:
            read = {"version_tag": "snapshot-77", "dataset_version_id": named.dataset_version_id}
            session.add(RunInput(run_id=run.run_id, dataset_id=number, **read))
        session.add(
            ObservedFacet(
                owner_type="DATASET", owner_id=number, facet="documentation",
                facet_hash=f"hash {place}", seen_at=seen, body=f"body {place}",
            )
        )  # fmt: skip


def test_a_split_restores_both_datasets_exactly(catalog: Catalog) -> None:
    with catalog.writing() as session:
        fill(session)
    before = state(catalog)
    with catalog.writing() as session:
        join_datasets(session, find_dataset(session, TABLE), find_dataset(session, PATH))
    with catalog.reading() as session:
        assert session.scalar(select(func.count()).select_from(Dataset)) == 2
    assert state(catalog) != before
    with catalog.writing() as session:
        restored, kept = split_dataset(session, PATH, actor="steward", reason="not the same")
        assert (restored.full_name, kept.full_name) == (PATH, TABLE)
    after = state(catalog)
    assert {name: after[name] for name in before if after[name] != before[name]} == {}
    with catalog.reading() as session:
        assert find_dataset(session, PATH).full_name == PATH
        hits = {hit.full_name for hit in search_datasets(session, "exposure").hits}
        assert hits == {TABLE, PATH}


def test_what_the_join_superseded_is_ready_again(catalog: Catalog) -> None:
    with catalog.writing() as session:
        fill(session)
    with catalog.writing() as session:
        join_datasets(session, find_dataset(session, TABLE), find_dataset(session, PATH))
    with catalog.reading() as session:
        versions = list_versions(session, find_dataset(session, TABLE).dataset_id)
        states = [row.state for row in versions if row.business_date == TUESDAY]
        assert sorted(states) == [READY, SUPERSEDED, SUPERSEDED, SUPERSEDED]
    with catalog.writing() as session:
        for dataset in split_dataset(session, PATH, actor="steward"):
            versions = list_versions(session, dataset.dataset_id)
            states = [row.state for row in versions if row.business_date == TUESDAY]
            assert states == [READY, SUPERSEDED]


def test_what_came_after_the_join_stays_and_is_the_newest(catalog: Catalog) -> None:
    with catalog.writing() as session:
        fill(session)
    with catalog.writing() as session:
        kept = join_datasets(session, find_dataset(session, TABLE), find_dataset(session, PATH))
    with catalog.writing() as session:
        reserve_version(session, kept.dataset_id, TUESDAY, state=READY)
    with catalog.writing() as session:
        restored, kept = split_dataset(session, PATH, actor="steward")
        states = [
            (row.version_tag, row.state)
            for row in list_versions(session, kept.dataset_id)
            if row.business_date == TUESDAY
        ]
        assert states[0] == ("2026-09-01.5", READY)
        assert {state for _, state in states[1:]} == {SUPERSEDED}
        versions = list_versions(session, restored.dataset_id)
        assert READY in {row.state for row in versions if row.business_date == TUESDAY}


def test_a_version_that_was_retracted_since_stays_retracted(catalog: Catalog) -> None:
    with catalog.writing() as session:
        fill(session)
    with catalog.writing() as session:
        kept = join_datasets(session, find_dataset(session, TABLE), find_dataset(session, PATH))
    with catalog.writing() as session:
        ready = next(
            row
            for row in list_versions(session, kept.dataset_id)
            if row.business_date == TUESDAY and row.state == READY
        )
        advance_version(session, ready, "RETRACTED", reason="wrong")
    with catalog.writing() as session:
        restored, _ = split_dataset(session, PATH, actor="steward")
        states = {row.state for row in list_versions(session, restored.dataset_id)}
        assert "RETRACTED" in states


def test_joins_of_one_dataset_are_undone_from_the_last_one_on(catalog: Catalog) -> None:
    names = ["s3://bucket/a", "s3://bucket/b"]
    with catalog.writing() as session:
        kept = create_dataset(session, "lake", "credit.exposure")
        for name in "ab":
            join_datasets(session, kept, create_dataset(session, "s3://bucket", name))
    with catalog.writing() as session:
        with pytest.raises(LaterJoinError, match="floe catalog split 's3://bucket/b'"):
            split_dataset(session, names[0], actor="steward")
        for name in reversed(names):
            split_dataset(session, name, actor="steward")
        with pytest.raises(JoinNotFoundError):
            split_dataset(session, names[0], actor="steward")


def test_joins_and_splits_are_in_the_audit_log(catalog: Catalog) -> None:
    with catalog.writing() as session:
        fill(session)
    with catalog.writing() as session:
        join_datasets(
            session,
            find_dataset(session, TABLE),
            find_dataset(session, PATH),
            actor="ann",
            reason="same bucket",
        )
        split_dataset(session, PATH, actor="bob", reason="a copy")
    with catalog.reading() as session:
        entries = [
            (entry.actor, entry.action, entry.object_key, entry.reason)
            for entry in list_audit(session, object_type="DATASET")
        ]
    assert entries == [
        ("bob", "dataset.split", TABLE, "a copy"),
        ("ann", "dataset.join", TABLE, "same bucket"),
    ]
