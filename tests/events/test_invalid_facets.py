"""Invalid facets: valid parts are used, ignored parts are noted."""

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from floe.api import create_app
from floe.catalog.database import Catalog
from floe.catalog.datasets import find_dataset
from floe.catalog.processes import find_process
from floe.catalog.recording.facets import ColumnLineage, Note, Ownership, read_columns, read_facet
from floe.catalog.tables.types import read_json
from floe.events.ingest import read_claim
from floe.events.openlineage_facets import Assertions, OutputStatistics, Symlinks, list_notes
from tests.events.factory import FOREVER

LINEAGE = "/api/v1/lineage"


def notes_on(facet: type[Any], content: Any) -> tuple[Any, list[Note]]:
    notes: list[Note] = []
    return read_facet(json.dumps(content).encode(), facet, notes.append), notes


def test_an_invalid_owner_is_ignored_and_the_next_one_used() -> None:
    facet, notes = notes_on(Ownership, {"owners": [{"name": 5}, "me", {"name": "team:risk"}]})
    assert [owner.name for owner in facet.owners] == ["team:risk"]
    assert [note.path for note in notes] == [".owners[0].name", ".owners[1]"]


@pytest.mark.parametrize("content", [5, None, "text", [1], {"owners": 5}, {"owners": {"a": 1}}])
def test_an_entirely_invalid_facet_is_ignored(content: Any) -> None:
    facet, notes = notes_on(Ownership, content)
    assert facet == Ownership()
    assert len(notes) == 1


def test_an_invalid_number_does_not_affect_other_fields() -> None:
    facet, notes = notes_on(OutputStatistics, {"rowCount": "many", "size": 7})
    assert (facet.rows, facet.size) == (None, 7)
    assert notes == [Note(".rowCount", "Expected `int`, got `str`")]
    assert notes_on(OutputStatistics, {"rowCount": -1})[0].rows is None


def test_an_assertion_without_a_result_is_ignored() -> None:
    given = [{"assertion": "not_null", "success": "yes"}, {"assertion": "unique", "success": True}]
    facet, notes = notes_on(Assertions, {"assertions": given})
    assert [assertion.assertion for assertion in facet.assertions] == ["unique"]
    assert [note.path for note in notes] == [".assertions[0].success"]


def test_a_symlink_with_a_too_long_name_is_ignored() -> None:
    long = {"namespace": "n" * 201, "name": "a"}
    facet, _ = notes_on(Symlinks, {"identifiers": [long, {"namespace": "n", "name": "a"}]})
    assert [(identifier.namespace, identifier.name) for identifier in facet.identifiers] == [
        ("n", "a")
    ]


def test_invalid_lineage_of_one_column_does_not_affect_the_others() -> None:
    good = {"namespace": "n", "name": "t", "field": "a", "transformations": [{"subtype": None}]}
    fields = {"x": {"inputFields": [{"namespace": ["n"], "name": "t", "field": "a"}, good]}, "y": 5}
    raw = json.dumps({"fields": fields, "dataset": 7}).encode()
    assert read_columns(raw) == [("n", "t", "a", "x", "DIRECT")]
    assert len(notes_on(ColumnLineage, json.loads(raw))[1]) == 3


def test_a_facet_nested_too_deeply_is_ignored() -> None:
    notes: list[Note] = []
    deep = b'{"owners": ' + b"[" * 5000 + b"]" * 5000 + b"}"
    assert read_facet(deep, Ownership, notes.append) == Ownership()
    assert notes


def bad_owner() -> dict[str, Any]:
    """The event that once closed the door."""
    return {
        "eventType": "COMPLETE",
        "eventTime": "2026-11-17T06:30:00Z",
        "run": {"runId": "bad1"},
        "job": {"namespace": "n", "name": "j", "facets": {"ownership": {"owners": 5}}},
    }


def test_an_event_with_an_invalid_facet_is_stored_and_shows_a_note(
    catalog: Catalog,
) -> None:
    headers = {"Host": "127.0.0.1"}
    with TestClient(create_app(catalog, login=False, retention=FOREVER), headers=headers) as client:
        assert client.post(LINEAGE, json=bad_owner()).status_code == 201
        assert client.post(LINEAGE, json=bad_owner()).status_code == 201
        (listed,) = client.get("/api/v1/events").json()["items"]
        shown = client.get(f"/api/v1/event/{listed['event_id']}").json()
    assert shown["body"] == bad_owner()
    assert [note["path"] for note in shown["notes"]] == ["$.job.facets.ownership.owners"]
    with catalog.reading() as session:
        assert find_process(session, "n/j").team is None


def test_a_facet_that_is_not_an_object_does_not_replace_an_older_one(catalog: Catalog) -> None:
    def owned_by(day: int, ownership: Any) -> dict[str, Any]:
        facets = {"ownership": ownership}
        dataset = {"namespace": "n", "name": "t", "facets": facets}
        return {"eventTime": f"2026-11-{day:02}T06:30:00Z", "dataset": dataset}

    headers = {"Host": "127.0.0.1"}
    with TestClient(create_app(catalog, login=False, retention=FOREVER), headers=headers) as client:
        for day, ownership in ((10, {"owners": [{"name": "risk"}]}), (11, 5), (12, None)):
            assert client.post(LINEAGE, json=owned_by(day, ownership)).status_code == 201
    with catalog.reading() as session:
        assert find_dataset(session, "n/t").owner_team == "risk"


def test_notes_contain_the_path_of_each_facet() -> None:
    body = bad_owner()
    body["outputs"] = [
        {
            "namespace": "n",
            "name": "t",
            "facets": {"schema": {"fields": "none"}, "documentation": None},
            "outputFacets": {"outputStatistics": [], "unknown": 5},
        }
    ]
    assert [note.path for note in list_notes(json.dumps(body).encode())] == [
        "$.job.facets.ownership.owners",
        "$.outputs[0].facets.schema.fields",
        "$.outputs[0].outputFacets.outputStatistics",
    ]


@pytest.mark.parametrize("floe", [5, {"inputs": 5}, {"inputs": {"a": 5}}, {"holder": []}])
def test_an_invalid_floe_facet_is_not_stored_with_the_run(floe: Any) -> None:
    body = bad_owner()
    body["run"]["facets"] = {"floe": floe, "other": {"a": 1}}
    claim = read_claim(json.dumps(body).encode())
    assert claim.run is not None
    assert json.loads(claim.run.facets or "") == {"other": {"a": 1}}
    body["run"]["facets"]["floe"] = {"inputs": {"a": ["2026-09-01.1"]}, "holder": "me"}
    claim = read_claim(json.dumps(body).encode())
    assert claim.run is not None
    assert json.loads(claim.run.facets or "") == body["run"]["facets"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"cut off \ud83d"', "cut off \ufffd"),
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'"\\ud800"', r"\ud800"),
        ("[" + "1" * 5000 + ", 7]", ["1" * 5000, 7]),
    ],
)
def test_stored_json_that_python_cannot_parse_can_be_read(text: str, value: Any) -> None:
    assert read_json(text) == value
