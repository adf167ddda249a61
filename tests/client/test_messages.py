"""The two calls of a legacy job, as OpenLineage events that floe can read."""

import json
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from floe.catalog.recording import EventClaim, Seen
from floe.client import BadReportError, dataset_message, process_message
from floe.client.messages import run_id_of
from floe.client.names import parse_process
from floe.events.claim_reader import run_uuid_of
from floe.events.ingest import read_claim
from floe.spec.identity import process_of_key

SIX = datetime(2026, 9, 1, 6, tzinfo=UTC)


def claimed(message: dict[str, Any]) -> EventClaim:
    return read_claim(json.dumps(message).encode())


def test_a_ready_dataset_is_a_completed_run_that_wrote_it() -> None:
    claim = claimed(
        dataset_message(
            "credit.positions",
            "v7",
            business_date=date(2026, 9, 1),
            rows=10,
            size=2048,
            schema={"id": "bigint"},
            occurred_at=SIX,
        )
    )
    (dataset,) = claim.datasets
    assert claim.run is not None
    assert claim.run.seen & Seen.COMPLETED
    assert claim.at == SIX
    assert claim.business_date == date(2026, 9, 1)
    assert (dataset.namespace, dataset.name, dataset.writes) == ("lake", "credit.positions", True)
    assert (dataset.version.tag, dataset.version.rows, dataset.version.size) == ("v7", 10, 2048)
    assert dataset.schema is not None
    assert b'"name": "id", "type": "bigint"' in dataset.schema


def test_a_failed_dataset_is_a_failed_run() -> None:
    claim = claimed(dataset_message("credit.positions", "v7", "failed", error="no feed"))
    assert claim.run is not None
    assert claim.run.seen & Seen.FAILED
    assert "no feed" in (claim.run.facets or "")


def test_registering_a_version_again_updates_the_same_run() -> None:
    first = dataset_message("credit.positions", "v7", "FAILED")
    again = dataset_message("lake/credit.positions", "v7", "READY", rows=3)
    other = dataset_message("credit.positions", "v8")
    assert run_id_of(first) == run_id_of(again) != run_id_of(other)


def test_without_a_version_every_registration_is_a_new_run() -> None:
    day = "2026-09-01"
    first, second = (dataset_message("a.b", business_date=day) for _ in range(2))
    assert run_id_of(first) != run_id_of(second)


def test_a_dataset_is_reported_by_its_job_or_by_a_placeholder() -> None:
    assert claimed(dataset_message("a.b")).process_key == "register_dataset/lake/a.b"
    assert claimed(dataset_message("a.b", job="AUTOSYS/BOX/JOB")).process_key == "AUTOSYS/BOX/JOB"


@pytest.mark.parametrize(
    ("name", "namespace", "expected"),
    [
        ("credit.positions", None, ("lake", "credit.positions")),
        ("DB2/CREDIT.POSITIONS", None, ("DB2", "CREDIT.POSITIONS")),
        ("s3://bucket/out/positions.csv", None, ("s3://bucket", "out/positions.csv")),
        ("out/positions.csv", "s3://bucket", ("s3://bucket", "out/positions.csv")),
    ],
)
def test_a_dataset_name_contains_its_namespace_or_belongs_to_the_lake(
    name: str, namespace: str | None, expected: tuple[str, str]
) -> None:
    (output,) = dataset_message(name, namespace=namespace)["outputs"]
    assert (output["namespace"], output["name"]) == expected


@pytest.mark.parametrize(
    ("status", "event_type"),
    [
        ("STARTED", "START"),
        ("running", "RUNNING"),
        ("SUCCESS", "COMPLETE"),
        ("Failed", "FAIL"),
        ("CANCELLED", "ABORT"),
    ],
)
def test_a_process_status_is_an_event_type(status: str, event_type: str) -> None:
    message = process_message("AUTOSYS/BOX/JOB", status)
    assert message["eventType"] == event_type
    assert (message["job"]["namespace"], message["job"]["name"]) == ("AUTOSYS", "BOX/JOB")


def test_a_process_reports_its_inputs_and_outputs() -> None:
    claim = claimed(
        process_message(
            "AUTOSYS/BOX/JOB",
            "SUCCESS",
            inputs=["market.fx@2026-09-01.1"],
            outputs=["credit.exposure", {"name": "credit.log", "rows": 4, "version": "9"}],
        )
    )
    read, written, logged = claim.datasets
    assert (read.name, read.reads, read.version.tag) == ("market.fx", True, "2026-09-01.1")
    assert (written.name, written.writes, written.version.tag) == ("credit.exposure", True, None)
    assert (logged.version.rows, logged.version.tag) == (4, "9")
    assert '"integration":"AUTOSYS"' in claim.process_facets["jobType"].replace(" ", "")


def test_a_run_id_that_is_not_a_uuid_is_mapped_as_on_the_server() -> None:
    message = process_message("AUTOSYS/BOX/JOB", "STARTED", run_id="PROD.1234567.1")
    assert run_id_of(message) == run_uuid_of("PROD.1234567.1")


def test_a_historical_report_is_marked() -> None:
    assert claimed(process_message("A/B", "SUCCESS", historical=True)).historical


def test_times_of_any_zone_are_sent_in_utc() -> None:
    london = datetime(2026, 9, 1, 7, tzinfo=timezone(timedelta(hours=1)))
    assert process_message("A/B", "STARTED", occurred_at=london)["eventTime"].startswith(
        "2026-09-01T06:00:00"
    )


@pytest.mark.parametrize(
    "key", ["AUTOSYS/BOX/JOB", "floe/credit/load", "dbt/credit/model", "s3://bucket/a/b", "a/b"]
)
def test_a_process_key_is_parsed_as_elsewhere_in_floe(key: str) -> None:
    assert parse_process(key) == (process_of_key(key).namespace, process_of_key(key).name)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dataset_message("a.b", status="LATE"), "Unknown status 'LATE'. Use one of: READY, FAILED."),  # noqa: E501
        (lambda: process_message("A/B", "DONE"), "STARTED, RUNNING, SUCCESS, FAILED, CANCELLED"),
        (lambda: process_message("JOB", "STARTED"), "'JOB': the namespace is missing"),
        (lambda: dataset_message(" "), "the name is empty"),
        (lambda: dataset_message("x" * 301), "too long"),
        (lambda: dataset_message("a.b", rows=-1), "must be a whole number, 0 or greater; got -1"),
        (lambda: dataset_message("a.b", rows="ten"), "got 'ten'"),  # type: ignore[arg-type]
        (lambda: dataset_message("a.b", ""), "version must be 1 to 300 characters long; got ''"),
        (lambda: dataset_message("a.b", business_date="yesterday"), "a date such as 2026-09-01"),
        (lambda: dataset_message("a.b", occurred_at="2026-09-01T06:00"), "a time with a time zone"),
        (lambda: dataset_message("a.b", occurred_at="six"), "a time with a time zone"),
        (
            lambda: dataset_message("a.b", occurred_at="0001-01-01T00:00:00+14:00"),
            "a time with a time zone",
        ),
        (lambda: dataset_message("a.b", business_date="9999-12-31"), "to 2199-12-31"),
        (lambda: dataset_message("a.b", business_date=date.min), "from 1900-01-01"),
        (lambda: dataset_message("a.b", schema=[{"type": "int"}]), "a mapping of column to type"),
    ],
)  # fmt: skip
def test_an_invalid_report_explains_what_is_expected(call: Any, message: str) -> None:
    with pytest.raises(BadReportError, match=message.replace("(", r"\(")):
        call()
