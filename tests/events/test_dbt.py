"""dbt-ol's events: statements become steps of their model, tests become checks."""

from typing import Any

import msgspec
import pytest
from sqlalchemy import select

from floe.catalog.database import Catalog
from floe.catalog.datasets import find_dataset
from floe.catalog.runs import describe_run, get_run
from floe.catalog.tables import Dataset, Process, QualityCheckDef, QualityCheckResult
from floe.catalog.version_queries import list_versions
from tests.events.factory import at, run_id
from tests.events.test_recording import record

MODEL = "model.credit.exposure"
TEST = "test.credit.unique_exposure_id.b5b5176e87"
DUCKDB = "duckdb:///credit.duckdb"


def sent(
    kind: str,
    minute: int,
    job: str,
    job_type: str,
    *,
    parent: str | None = None,
    inputs: list[dict[str, Any]] | None = None,
    outputs: list[dict[str, Any]] | None = None,
) -> bytes:
    """An event like those of dbt-ol 1.54 with --consume-structured-logs."""
    facets = {}
    if parent:
        named = {"namespace": "dbt", "name": parent}
        facets["parent"] = {"run": {"runId": run_id(parent)}, "job": named}
    types = {"processingType": "BATCH", "integration": "DBT", "jobType": job_type}
    return msgspec.json.encode(
        {
            "eventType": kind,
            "eventTime": at(minute).isoformat(),
            "run": {"runId": run_id(job), "facets": facets},
            "job": {"namespace": "dbt", "name": job, "facets": {"jobType": types}},
            "inputs": inputs or [],
            "outputs": outputs or [],
        }
    )


def table(name: str, **facets: Any) -> dict[str, Any]:
    return {"namespace": DUCKDB, "name": name, "facets": facets}


EXPOSURE = table("credit.main.exposure")
VERDICT = {"assertions": [{"assertion": "unique", "success": False, "column": "id"}]}
AUDIT = table("credit.main_dbt_test__audit.unique_exposure_id")
BUILD = [
    sent("START", 0, "dbt-run-credit", "JOB"),
    sent("START", 1, MODEL, "MODEL", parent="dbt-run-credit", outputs=[EXPOSURE]),
    sent("START", 2, f"{MODEL}.sql.1", "SQL", parent=MODEL),
    sent("COMPLETE", 3, f"{MODEL}.sql.1", "SQL", parent=MODEL),
    sent("START", 4, f"{MODEL}.sql.2", "SQL", parent=MODEL),
    sent("FAIL", 5, f"{MODEL}.sql.2", "SQL", parent=MODEL),
    sent("COMPLETE", 6, MODEL, "MODEL", parent="dbt-run-credit", outputs=[EXPOSURE]),
    sent(
        "START",
        7,
        TEST,
        "TEST",
        parent="dbt-run-credit",
        inputs=[table("credit.main.exposure", dataQualityAssertions=VERDICT)],
        outputs=[AUDIT],
    ),
    sent(
        "COMPLETE",
        8,
        TEST,
        "TEST",
        parent="dbt-run-credit",
        inputs=[
            {
                **table("credit.main.exposure", dataQualityAssertions=VERDICT),
                "inputFacets": {"dataQualityAssertions": VERDICT},
            }
        ],
        outputs=[AUDIT],
    ),
    sent("COMPLETE", 9, "dbt-run-credit", "JOB"),
]


@pytest.mark.parametrize("order", [1, -1], ids=["in order", "backwards"])
def test_statements_become_steps_of_their_model(catalog: Catalog, order: int) -> None:
    record(catalog, BUILD[::order], [3])
    with catalog.reading() as session:
        keys = sorted(session.scalars(select(Process.process_key)))
        assert keys == ["dbt/dbt-run-credit", f"dbt/{MODEL}", f"dbt/{TEST}"]
        run = get_run(session, run_id(MODEL))
        assert run.status == "SUCCESS"
        steps = describe_run(session, run.run_uuid).steps
        assert [(step.step_name, step.status) for step in steps] == [
            ("sql.1", "SUCCESS"),
            ("sql.2", "FAILED"),
        ]
        dataset = find_dataset(session, f"{DUCKDB}/credit.main.exposure")
        assert len(list_versions(session, dataset.dataset_id)) == 1


def test_tests_become_checks_and_write_no_dataset(catalog: Catalog) -> None:
    record(catalog, [*BUILD, *BUILD], [4])
    with catalog.reading() as session:
        names = list(session.scalars(select(Dataset.name)))
        assert names == ["credit.main.exposure"]
        results = select(QualityCheckDef.name, QualityCheckResult.status)
        rows = session.execute(results.join(QualityCheckResult)).all()
        assert [tuple(row) for row in rows] == [("unique_id", "FAIL")]


def test_a_job_that_is_only_named_like_a_statement_is_a_process(catalog: Catalog) -> None:
    record(catalog, [sent("COMPLETE", 0, "load.sql.1", "SQL", parent="night")], [1])
    with catalog.reading() as session:
        assert list(session.scalars(select(Process.process_key))) == ["dbt/load.sql.1"]
