"""Decoding events: valid ones are accepted, others rejected with every reason."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floe.events.errors import BadEventError, InvalidEventError, MalformedEventError
from floe.events.ingest import read_claim
from floe.events.openlineage import read_event
from tests.events.factory import at, event, read, written

MINIMAL = {
    "eventType": "COMPLETE",
    "run": {
        "runId": "uuid-1234",
        "startTime": "2025-09-08T08:02:00Z",
        "endTime": "2025-09-08T08:07:00Z",
    },
    "job": {"namespace": "AUTOSYS", "name": "BOX/JobA", "facets": {}},
    "inputs": [
        {"namespace": "DB2", "name": "SCHEMA.TABLE_A", "facets": {"version": "2025-09-08T07:30"}}
    ],
    "outputs": [
        {
            "namespace": "S3",
            "name": "s3://bucket/credit-out/v20250908",
            "facets": {"path": "s3://bucket/credit-out", "rows": 12345},
        }
    ],
}


def reasons(body: Any) -> list[str]:
    with pytest.raises(InvalidEventError) as refused:
        read_event(json.dumps(body).encode())
    return [str(reason) for reason in refused.value.reasons]


def test_an_event_of_the_official_client_is_read() -> None:
    body = event("COMPLETE", at(0), inputs=[read("a")], outputs=[written("b", rows=3)])
    claim = read_claim(body)
    assert claim.process_key == "AUTOSYS/exposure"
    assert [(dataset.name, dataset.reads, dataset.writes) for dataset in claim.datasets] == [
        ("a", True, False),
        ("b", False, True),
    ]
    assert claim.datasets[1].version.rows == 3


def test_the_minimal_payload_of_an_adapter_is_read() -> None:
    claim = read_claim(json.dumps(MINIMAL).encode())
    assert claim.run is not None
    assert claim.run.started_at is not None
    assert claim.run.started_at.isoformat() == "2025-09-08T08:02:00+00:00"
    assert claim.at.isoformat() == "2025-09-08T08:07:00+00:00"
    source, target = claim.datasets
    assert (source.version.tag, str(source.version.business_date)) == (
        "2025-09-08T07:30",
        "2025-09-08",
    )
    assert (target.version.rows, target.version.path) == (12345, "s3://bucket/credit-out")


def test_the_same_non_uuid_id_is_the_same_run() -> None:
    first, again = (read_claim(json.dumps({**MINIMAL, "n": n}).encode()) for n in range(2))
    assert first.run is not None
    assert again.run is not None
    assert first.run.run_uuid == again.run.run_uuid
    assert first.hash != again.hash


def test_every_reason_is_listed_with_its_path() -> None:
    assert reasons(
        {
            "eventType": "DONE",
            "eventTime": "yesterday",
            "run": {"runId": 5},
            "job": {"namespace": "", "facets": []},
            "inputs": [{"namespace": "a"}, 3],
            "outputs": [{"namespace": "a", "name": "x" * 301}],
        }
    ) == [
        "$.eventType: must be one of START, RUNNING, COMPLETE, ABORT, FAIL, OTHER",
        "$.eventTime: must be a timestamp such as 2026-09-01T06:30:00Z",
        "$.run.runId: must be text, not a number",
        "$.job.namespace: is empty",
        "$.job.name: is missing",
        "$.job.facets: must be an object, not a list",
        "$.inputs[0].name: is missing",
        "$.inputs[1]: must be an object, not a number",
        "$.outputs[0].name: has 301 characters; at most 300 are allowed",
    ]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            {"eventTime": "2026-09-01T12:00:00Z"},
            "$: has no run with a job, no job and no dataset",
        ),
        (
            {"run": {"runId": "x"}, "eventTime": "2026-09-01T12:00:00Z"},
            "$.job: is missing: a run event must name its job",
        ),
        ([], "$: must be an object, not a list"),
        ({"job": {"namespace": "a", "name": "b"}}, "$.eventTime: is missing"),
        (
            {"job": {"namespace": "a", "name": "b"}, "eventTime": "1815-06-18T12:00:00Z"},
            "$.eventTime: must be between 1970 and 2200",
        ),
    ],
)
def test_a_body_that_is_not_an_event_is_rejected_with_a_reason(body: Any, reason: str) -> None:
    assert reasons(body) == [reason]


def test_missing_and_invalid_values_are_reported_together() -> None:
    assert reasons({"eventType": "BAD", "run": {"runId": 3}}) == [
        "$.eventType: must be one of START, RUNNING, COMPLETE, ABORT, FAIL, OTHER",
        "$.job: is missing: a run event must name its job",
        "$.eventTime: is missing",
        "$.run.runId: must be text, not a number",
    ]


def test_a_nul_character_is_rejected_anywhere_in_the_event() -> None:
    sent = {
        "eventTime": "2026-09-01T12:00:00Z",
        "job": {"namespace": "a", "name": "b\0", "facets": {"x": ["C:\\u0000", {"k\0": "\\\0"}]}},
    }
    not_storable = "U+0000, which databases cannot store"
    assert reasons(sent) == [
        f"$.job.name: contains {not_storable}",
        f"$.job.facets.x[1]: has a key with {not_storable}",
        f"$.job.facets.x[1].k\0: contains {not_storable}",
    ]


def test_a_backslash_before_u0000_is_just_text() -> None:
    sent = {"eventTime": "2026-09-01T12:00:00Z", "job": {"namespace": "a", "name": "C:\\u0000"}}
    assert read_event(json.dumps(sent).encode()).job is not None


@pytest.mark.parametrize("body", [b"", b"{", b"nonsense", b"\xff\xfe", b'{"a": }'])
def test_a_body_that_is_not_json_is_rejected_as_such(body: bytes) -> None:
    with pytest.raises(MalformedEventError, match="The body is not JSON"):
        read_event(body)


@pytest.mark.parametrize("deep", [b"[" * 100_000, b'{"run":' * 100_000])
def test_deep_nesting_is_rejected(deep: bytes) -> None:
    with pytest.raises(BadEventError):
        read_event(deep)


def test_an_invalid_facet_claims_nothing() -> None:
    body = {
        "eventType": "COMPLETE",
        "eventTime": "2026-09-01T12:00:00Z",
        "run": {"runId": "x", "facets": {"nominalTime": 5, "parent": [], "floe": None}},
        "job": {"namespace": "a", "name": "b", "facets": {"ownership": "me"}},
        "outputs": [
            {
                "namespace": "lake",
                "name": "t",
                "facets": {"schema": {"fields": {}}, "symlinks": [1], "version": {"x": 1}},
                "outputFacets": {"outputStatistics": {"rowCount": -1, "size": "big"}},
            }
        ],
    }
    claim = read_claim(json.dumps(body).encode())
    version = claim.datasets[0].version
    assert (version.tag, version.rows, version.size) == (None, None, None)
    assert claim.datasets[0].symlinks == ()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
NAMES = [
    "eventType",
    "eventTime",
    "run",
    "job",
    "dataset",
    "inputs",
    "outputs",
    "runId",
    "namespace",
    "name",
    "facets",
    "startTime",
    "schema",
    "fields",
    "version",
    "symlinks",
    "identifiers",
    "columnLineage",
    "dataQualityAssertions",
    "parent",
    "nominalTime",
    "nominalStartTime",
    "ownership",
    "documentation",
    "outputFacets",
    "outputStatistics",
    "floe",
]
FULL_EVENT = event(
    "COMPLETE",
    at(0),
    inputs=[read("market.fx", columns=["ccy"], version="v3")],
    outputs=[
        written(
            "credit.exposure",
            columns=["client"],
            rows=6,
            version="2026-09-01",
            from_columns={"client": ("market.fx", "ccy")},
            description="what clients owe",
            owner="team:risk",
            symlink=("file", "/lake/exposure"),
        )
    ],
    nominal=at(0),
    facets={"floe": {"businessDate": "2026-09-01"}},
)
odd_events = st.recursive(
    json_values
    | st.sampled_from(["COMPLETE", "2026-09-01T12:00:00Z", "9999-12-31T23:59:59-14:00"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6)
    ),
    max_leaves=30,
)


@given(odd_events)
def test_no_json_crashes_the_reader(value: Any) -> None:
    with suppress(BadEventError):
        read_claim(json.dumps(value).encode())


@given(st.binary(max_size=8), st.data())
def test_no_bytes_within_an_event_crash_the_reader(odd: bytes, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(FULL_EVENT)))
    with suppress(BadEventError):
        read_claim(FULL_EVENT[:position] + odd + FULL_EVENT[position:])


@given(st.binary(max_size=200))
def test_no_bytes_crash_the_reader(body: bytes) -> None:
    with pytest.raises(BadEventError):
        read_claim(body)
