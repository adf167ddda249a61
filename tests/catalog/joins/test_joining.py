"""Two names that turn out to be one dataset: everything hangs on the one that stays."""

from datetime import UTC, date, datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from floe.catalog.checks import FAIL, page_results, put_check, record_result
from floe.catalog.database import Catalog
from floe.catalog.datasets import create_dataset, find_dataset, list_tags, replace_tags
from floe.catalog.edges import consumes, list_consumers, list_producers, produces
from floe.catalog.joins.joining import join_datasets
from floe.catalog.processes import register_process
from floe.catalog.search import search_datasets
from floe.catalog.tables import Dataset, LineageEdge, Project
from floe.catalog.version_queries import list_versions
from floe.catalog.versions import READY, SUPERSEDED, reserve_version
from tests.catalog.graph import observe_edges

NOON = datetime(2026, 9, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
TUESDAY = date(2026, 9, 1)


def both(session: Session) -> tuple[Dataset, Dataset]:
    names = ("lake/credit.exposure", "s3://bucket/exposure")
    return find_dataset(session, names[0]), find_dataset(session, names[1])


def test_the_older_dataset_stays_and_the_others_name_leads_to_it(catalog: Catalog) -> None:
    with catalog.writing() as session:
        table = create_dataset(session, "lake", "credit.exposure")
        path = create_dataset(session, "s3://bucket", "exposure")
        assert join_datasets(session, path, table) is table
    with catalog.reading() as session:
        assert find_dataset(session, "s3://bucket/exposure").full_name == "lake/credit.exposure"
        assert session.scalar(select(func.count()).select_from(Dataset)) == 1
        hits = search_datasets(session, "exposure").hits
        assert [hit.full_name for hit in hits] == ["lake/credit.exposure"]


def test_a_declared_dataset_stays_even_when_it_is_younger(catalog: Catalog) -> None:
    with catalog.writing() as session:
        path = create_dataset(session, "s3://bucket", "exposure")
        project = Project(name="risk", timezone="UTC", content_hash="x", created_at=NOON)
        session.add(project)
        session.flush()
        table = create_dataset(session, "lake", "credit.exposure", project_id=project.project_id)
        assert join_datasets(session, path, table) is table


def test_a_curated_dataset_stays_even_when_it_is_younger(catalog: Catalog) -> None:
    with catalog.writing() as session:
        path = create_dataset(session, "s3://bucket", "exposure")
        table = create_dataset(session, "lake", "credit.exposure", curated=True)
        assert join_datasets(session, path, table) is table


def test_edges_are_joined_with_the_wider_span(catalog: Catalog) -> None:
    with catalog.writing() as session:
        table = create_dataset(session, "lake", "credit.exposure")
        path = create_dataset(session, "s3://bucket", "exposure")
        reader = register_process(session, "x/reader").process_id
        writer = register_process(session, "x/writer").process_id
        observe_edges(session, [consumes(table.dataset_id, reader)], NOON)
        observe_edges(session, [consumes(path.dataset_id, reader)], NOON + HOUR)
        observe_edges(session, [produces(writer, path.dataset_id)], NOON)
        join_datasets(session, table, path)
    with catalog.reading() as session:
        assert [one.process_id for one in list_consumers(session, table.dataset_id)] == [reader]
        assert [one.process_id for one in list_producers(session, table.dataset_id)] == [writer]
        spans = session.execute(
            select(LineageEdge.first_seen, LineageEdge.last_seen).where(
                LineageEdge.edge_role == "CONSUMES"
            )
        ).all()
        assert [tuple(span) for span in spans] == [(NOON, NOON + HOUR)]


def test_versions_keep_apart_and_the_newest_is_ready(catalog: Catalog) -> None:
    with catalog.writing() as session:
        table = create_dataset(session, "lake", "credit.exposure")
        path = create_dataset(session, "s3://bucket", "exposure")
        for dataset, made in ((table, NOON), (path, NOON + HOUR)):
            version = reserve_version(session, dataset.dataset_id, TUESDAY, state=READY)
            version.produced_at = made
    with catalog.writing() as session:
        join_datasets(session, *both(session))
    with catalog.reading() as session:
        versions = list_versions(session, table.dataset_id)
        assert [(one.version_tag, one.state) for one in versions] == [
            ("2026-09-01.2", READY),
            ("2026-09-01.1", SUPERSEDED),
        ]


def test_a_version_that_the_producer_named_is_one_under_both_names(catalog: Catalog) -> None:
    with catalog.writing() as session:
        table = create_dataset(session, "lake", "credit.exposure")
        path = create_dataset(session, "s3://bucket", "exposure")
        for dataset in (table, path):
            version = reserve_version(session, dataset.dataset_id, TUESDAY, state=READY)
            version.version_tag = "snapshot-77"
    with catalog.writing() as session:
        join_datasets(session, *both(session))
    with catalog.reading() as session:
        tags = [one.version_tag for one in list_versions(session, table.dataset_id)]
        assert tags == ["snapshot-77"]


def test_tags_checks_and_results_are_joined(catalog: Catalog) -> None:
    with catalog.writing() as session:
        table = create_dataset(session, "lake", "credit.exposure")
        path = create_dataset(session, "s3://bucket", "exposure")
        replace_tags(session, table.dataset_id, ["pii", "daily"])
        replace_tags(session, path.dataset_id, ["daily", "raw"])
        for dataset in (table, path):
            check = put_check(session, dataset.dataset_id, "no_negative", kind="sql")
            record_result(session, check, FAIL)
        put_check(session, path.dataset_id, "not_empty", kind="row_count")
        join_datasets(session, table, path)
    with catalog.reading() as session:
        assert list_tags(session, table.dataset_id) == ["daily", "pii", "raw"]
        assert len(page_results(session, table.dataset_id)) == 2
