"""Facets update descriptions, owners, versions, checks and column lineage."""

import json
from datetime import timedelta
from typing import Any

import pytest
from openlineage.client.facet_v2 import parent_run
from sqlalchemy import func, select, text

from floe import clock
from floe.catalog.changes import list_changes
from floe.catalog.checks import list_checks, page_results
from floe.catalog.column_lineage import walk_columns
from floe.catalog.database import Catalog
from floe.catalog.datasets import (
    ACTIVE,
    DEPRECATED,
    create_dataset,
    find_dataset,
    update_dataset,
)
from floe.catalog.processes import find_process
from floe.catalog.recording import Recorder, record_group
from floe.catalog.runs import get_run
from floe.catalog.stable_names import is_made_here
from floe.catalog.tables import ColumnEdge, Dataset, DatasetVersion, ObservedFacet, RunInput
from floe.catalog.version_queries import list_versions
from floe.client.messages import dataset_message
from floe.events.ingest import read_claim
from tests.events.factory import FOREVER, NOON, at, event, read, run_id, written


def record(catalog: Catalog, *bodies: bytes, historical: bool = False) -> None:
    claims = [read_claim(body, historical=historical, retention=FOREVER) for body in bodies]
    recorder = Recorder(catalog.store)
    assert record_group(catalog, recorder, claims, clock.now()) == {}
    recorder.close()


def with_facets(name: str, **facets: Any) -> bytes:
    """An event whose only output has these facets."""
    body = json.loads(event("COMPLETE", at(0), outputs=[written(name)]))
    body["outputs"][0]["facets"].update(facets)
    return json.dumps(body).encode()


def test_description_owner_and_technology_come_from_events_when_undeclared(
    catalog: Catalog,
) -> None:
    output = written("credit.exposure", description="what may be lost", owner="team:Credit Risk")
    record(catalog, event("COMPLETE", at(0), outputs=[output]))
    with catalog.reading() as session:
        dataset = find_dataset(session, "credit.exposure")
        assert (dataset.description, dataset.owner_team) == ("what may be lost", "Credit Risk")
        assert find_process(session, "AUTOSYS/exposure").technology == "AUTOSYS"


def test_declared_values_win_over_events(catalog: Catalog) -> None:
    with catalog.writing() as session:
        session.execute(
            text(
                "INSERT INTO project (name, timezone, content_hash, created_at) "
                "VALUES ('risk', 'UTC', 'x', '2026-09-01 12:00:00')"
            )
        )
        create_dataset(session, "lake", "credit.exposure", project_id=1, description="declared")
    output = written("credit.exposure", description="observed")
    record(catalog, event("COMPLETE", at(0), outputs=[output]))
    with catalog.reading() as session:
        assert find_dataset(session, "credit.exposure").description == "declared"


def test_curated_values_win_over_events(catalog: Catalog) -> None:
    output = written("credit.exposure", description="observed", owner="team:Jobs")
    record(catalog, event("COMPLETE", at(0), "before", outputs=[output]))
    with catalog.writing() as session:
        dataset = find_dataset(session, "credit.exposure")
        update_dataset(session, dataset, owner_team="Credit Risk", curated=True)
    later = written("credit.exposure", description="taken over", owner="team:Thieves")
    record(catalog, event("COMPLETE", at(1), "after", outputs=[later]))
    dropped = {"lifecycleStateChange": "DROP", "_producer": "x", "_schemaURL": "y"}
    record(catalog, with_facets("credit.exposure", lifecycleStateChange=dropped))
    with catalog.reading() as session:
        dataset = find_dataset(session, "credit.exposure")
        assert (dataset.description, dataset.owner_team) == ("observed", "Credit Risk")
        assert dataset.status == ACTIVE
        kept = session.scalar(select(ObservedFacet.body).where(ObservedFacet.facet == "ownership"))
        assert "Thieves" in str(kept)


def test_a_symlink_does_not_change_a_curated_dataset(catalog: Catalog) -> None:
    record(catalog, event("COMPLETE", at(0), "old", outputs=[written("jobs.copy", owner="Jobs")]))
    with catalog.writing() as session:
        create_dataset(session, "lake", "credit.exposure", owner_team="Credit Risk", curated=True)
    linked = written("jobs.copy", symlink=("lake", "credit.exposure"))
    record(catalog, event("COMPLETE", at(1), "new", outputs=[linked]))
    with catalog.reading() as session:
        joined = find_dataset(session, "jobs.copy")
        assert (joined.name, joined.owner_team) == ("credit.exposure", "Credit Risk")


def test_a_dropped_dataset_is_deprecated_until_it_is_created_again(catalog: Catalog) -> None:
    dropped = {"lifecycleStateChange": "DROP", "_producer": "x", "_schemaURL": "y"}
    record(catalog, with_facets("t", lifecycleStateChange=dropped))
    with catalog.reading() as session:
        assert find_dataset(session, "t").status == DEPRECATED


def test_the_business_date_is_the_nominal_time_in_the_datasets_time_zone(catalog: Catalog) -> None:
    with catalog.writing() as session:
        create_dataset(session, "lake", "tokyo.trades", timezone="Asia/Tokyo")
    nominal = NOON + timedelta(hours=8)
    record(catalog, event("COMPLETE", at(0), outputs=[written("tokyo.trades")], nominal=nominal))
    with catalog.reading() as session:
        (version,) = list_versions(session, find_dataset(session, "tokyo.trades").dataset_id)
        assert (version.version_tag, version.state) == ("2026-09-02.1", "READY")


def test_a_date_in_the_producers_version_is_the_business_date(catalog: Catalog) -> None:
    record(catalog, event("COMPLETE", at(0), outputs=[written("t", version="v20260815-0802")]))
    with catalog.reading() as session:
        (version,) = list_versions(session, find_dataset(session, "t").dataset_id)
        assert (version.version_tag, str(version.business_date)) == ("v20260815-0802", "2026-08-15")


def test_a_version_of_a_dataset_with_checks_waits_for_validation(catalog: Catalog) -> None:
    with catalog.writing() as session:
        create_dataset(session, "lake", "checked", needs_validation=True)
    record(catalog, event("COMPLETE", at(0), outputs=[written("checked")]))
    with catalog.reading() as session:
        (version,) = list_versions(session, find_dataset(session, "checked").dataset_id)
        assert version.state == "WRITTEN"
        assert [change.kind for change in list_changes(session, 0)] == ["VERSION_WRITTEN"]


def test_only_completed_runs_create_versions(catalog: Catalog) -> None:
    for state in ("START", "RUNNING", "FAIL", "ABORT"):
        record(catalog, event(state, at(0), state, outputs=[written("t")]))
    with catalog.reading() as session:
        assert list_versions(session, find_dataset(session, "t").dataset_id) == []
        assert [change.kind for change in list_changes(session, 0)] == ["RUN_FAILED"]


def test_a_failure_after_success_is_stored_and_flagged(catalog: Catalog) -> None:
    record(catalog, event("COMPLETE", at(0), "r"), event("FAIL", at(1), "r", error="too late"))
    with catalog.reading() as session:
        run = get_run(session, run_id("r"))
        assert (run.status, run.saw_success, run.saw_failure) == ("SUCCESS", True, True)


def test_a_start_after_the_end_does_not_reopen_the_run(catalog: Catalog) -> None:
    record(catalog, event("COMPLETE", at(5), "r"))
    record(catalog, event("START", at(0), "r"))
    with catalog.reading() as session:
        run = get_run(session, run_id("r"))
        assert (run.status, run.start_ts, run.end_ts) == ("SUCCESS", at(0), at(5))


def test_the_parent_of_a_run_is_kept(catalog: Catalog) -> None:
    facet = parent_run.ParentRunFacet(
        run=parent_run.Run(run_id("box")), job=parent_run.Job("AUTOSYS", "BOX")
    )
    record(catalog, event("START", at(0), "r", facets={"parent": facet}))
    with catalog.reading() as session:
        assert get_run(session, run_id("r")).parent_run_uuid == run_id("box")


def test_historical_events_fill_history_and_trigger_nothing(catalog: Catalog) -> None:
    record(catalog, event("COMPLETE", at(0), outputs=[written("t")]), historical=True)
    record(catalog, event("FAIL", at(0), "other"), historical=True)
    with catalog.reading() as session:
        (version,) = list_versions(session, find_dataset(session, "t").dataset_id)
        assert version.state == "READY"
        assert list_changes(session, 0) == []


def test_inputs_refer_to_the_versions_they_name(catalog: Catalog) -> None:
    record(catalog, event("COMPLETE", at(0), "fx", "load", outputs=[written("fx", version="7")]))
    reads = [read("fx", version="7"), read("clients", version="v3"), read("rates")]
    record(catalog, event("COMPLETE", at(1), "r", inputs=reads))
    with catalog.reading() as session:
        run = get_run(session, run_id("r"))
        rows = session.execute(
            select(Dataset.name, RunInput.version_tag, DatasetVersion.state)
            .join(Dataset, Dataset.dataset_id == RunInput.dataset_id)
            .outerjoin(
                DatasetVersion, DatasetVersion.dataset_version_id == RunInput.dataset_version_id
            )
            .where(RunInput.run_id == run.run_id)
            .order_by(Dataset.name)
        )
        assert [tuple(row) for row in rows] == [
            ("clients", "v3", "EXTERNAL"),
            ("fx", "7", "READY"),
            ("rates", "", None),
        ]


def test_assertions_become_checks_with_results(catalog: Catalog) -> None:
    assertions = [
        {"assertion": "not_null", "column": "id", "success": True},
        {"assertion": "unique", "column": "id", "success": False},
        {"assertion": "row_count", "success": False, "severity": "warn", "name": "enough"},
    ]
    body = with_facets("t", dataQualityAssertions={"assertions": assertions})
    record(catalog, body)
    record(catalog, body)
    with catalog.reading() as session:
        dataset_id = find_dataset(session, "t").dataset_id
        checks = {check.qdef_id: check.name for check in list_checks(session, dataset_id)}
        results = page_results(session, dataset_id)
        assert sorted((checks[result.qdef_id], result.status) for result in results) == [
            ("enough", "WARN"),
            ("not_null_id", "PASS"),
            ("unique_id", "FAIL"),
        ]
        assert all(result.dataset_version_id is not None for result in results)


def test_column_edges_have_the_kind_of_their_transformation(catalog: Catalog) -> None:
    source = {"namespace": "lake", "name": "trades", "field": "notional"}
    kinds = [
        {"type": "DIRECT", "subtype": "AGGREGATION"},
        {"type": "INDIRECT", "subtype": "FILTER"},
    ]
    fields = {"total": {"inputFields": [{**source, "transformations": kinds}]}}
    joined = [
        {**source, "field": "id", "transformations": [{"type": "INDIRECT", "subtype": "JOIN"}]}
    ]
    record(catalog, with_facets("t", columnLineage={"fields": fields, "dataset": joined}))
    with catalog.reading() as session:
        lineage = walk_columns(session, find_dataset(session, "t"), depth=1)
        assert sorted(
            (link.source.column, link.target.column, link.kind) for link in lineage.edges
        ) == [
            ("id", "*", "JOIN"),
            ("notional", "total", "AGGREGATE"),
            ("notional", "total", "FILTER"),
        ]


def test_column_lineage_with_a_broken_part_keeps_the_rest(catalog: Catalog) -> None:
    good = {"inputFields": [{"namespace": "lake", "name": "trades", "field": "id"}]}
    fields = {"id": good, "bad": {"inputFields": [{"namespace": 5}]}, "worse": 7}
    record(catalog, with_facets("t", columnLineage={"fields": fields}))
    with catalog.reading() as session:
        lineage = walk_columns(session, find_dataset(session, "t"), depth=1)
        assert [(link.source.column, link.target.column) for link in lineage.edges] == [
            ("id", "id")
        ]


def test_two_names_of_one_dataset_are_one_source_of_a_column(catalog: Catalog) -> None:
    source = {"field": "amount", "transformations": []}
    fields = {
        "total": {
            "inputFields": [
                {"namespace": "a/b", "name": "c", **source},
                {"namespace": "a", "name": "b/c", **source},
            ]
        }
    }
    record(catalog, with_facets("t", columnLineage={"fields": fields}))
    with catalog.reading() as session:
        assert session.scalar(select(func.count()).select_from(ColumnEdge)) == 1


def test_an_outside_event_cannot_set_floes_own_version_facet(catalog: Catalog) -> None:
    sent = json.loads(event("COMPLETE", at(0), outputs=[written("t", rows=3)]))
    note = {"snapshot": 1, "whole": True}
    (output,) = sent["outputs"]
    output["facets"].update(floe=note, path="/etc", other={"kept": "yes"})
    output["outputFacets"]["floe"] = note
    record(catalog, json.dumps(sent).encode())
    with catalog.reading() as session:
        (version,) = list_versions(session, find_dataset(session, "t").dataset_id)
        assert not is_made_here(version)
        assert (version.metadata_json or {})["other"] == {"kept": "yes"}


@pytest.mark.parametrize(
    ("facets", "attempt"),
    [
        ({}, 1),
        ({"floe": {"attempt": 3}}, 3),
        ({"airflow": {"taskInstance": {"try_number": 2}}}, 2),
        ({"airflow": {"taskInstance": {"try_number": 0}}}, 1),
        ({"floe": {"attempt": 0}}, 1),
        ({"airflow": "2"}, 1),
    ],
)
def test_the_attempt_of_a_run_is_recorded(
    catalog: Catalog, facets: dict[str, Any], attempt: int
) -> None:
    body = json.loads(event("COMPLETE", at(1), "a"))
    body["run"]["facets"].update(facets)
    # A START that arrives late belongs to an earlier attempt.
    record(catalog, json.dumps(body).encode(), event("START", at(0), "a"))
    with catalog.reading() as session:
        assert get_run(session, run_id("a")).attempt == attempt


def test_a_producers_checksum_is_recorded_with_the_version(catalog: Catalog) -> None:
    message = dataset_message("credit.positions", "2026-09-01", checksum="sha256:9f86d081")
    record(catalog, json.dumps(message).encode())
    with catalog.reading() as session:
        dataset = find_dataset(session, "credit.positions")
        (version,) = list_versions(session, dataset.dataset_id)
        assert version.checksum == "sha256:9f86d081"


@pytest.mark.parametrize("checksum", ["9f86d081", "sha256:", "sha256:" + "0" * 300, 5, None])
def test_a_checksum_without_its_algorithm_is_left_out(catalog: Catalog, checksum: Any) -> None:
    record(catalog, with_facets("credit.exposure", checksum={"checksum": checksum}))
    with catalog.reading() as session:
        dataset = find_dataset(session, "credit.exposure")
        (version,) = list_versions(session, dataset.dataset_id)
        assert version.checksum is None
