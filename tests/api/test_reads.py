"""Reading the catalog over HTTP, on each store, after a small night of runs."""

import base64
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from starlette.testclient import TestClient

from floe.api import create_app
from floe.catalog.checks import put_check
from floe.catalog.database import Catalog
from floe.catalog.datasets import find_dataset, update_dataset
from floe.catalog.principals import PLATFORM_ADMIN, create_token
from tests.api.night import (
    COMPUTE,
    EXPOSURE,
    POSITIONS,
    REPORT,
    event,
    number_of,
    run_id,
    tell,
)
from tests.catalog.graph import sla

# Not the API's catalog fixture, because this module runs on PostgreSQL too.
from tests.conftest import STORES, new_catalog
from tests.conftest import catalog as catalog  # noqa: PLC0414
from tests.events.factory import FOREVER

DAYS = ("2026-09-01", "2026-09-02", "2026-09-03")


@pytest.fixture(scope="module", params=STORES)
def api(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TestClient]:
    """A shared administrator's client after three nights, for tests that only read."""
    with (
        new_catalog(request, tmp_path_factory.mktemp("reads")) as catalog,
        client_after_nights(catalog) as client,
    ):
        yield client


@pytest.fixture
def changed(catalog: Catalog) -> Iterator[TestClient]:
    """An administrator's client for tests that change something."""
    with client_after_nights(catalog) as client:
        yield client


@contextmanager
def client_after_nights(catalog: Catalog) -> Iterator[TestClient]:
    with catalog.writing() as session:
        token = create_token(session, "admin", PLATFORM_ADMIN, actor="test").text
    headers = {"Authorization": f"Bearer {token}"}
    with TestClient(
        create_app(catalog, retention=FOREVER), "http://127.0.0.1", headers=headers
    ) as client:
        tell(client, *DAYS)
        yield client


def test_a_dataset_is_returned_with_all_details(api: TestClient) -> None:
    dataset_id = number_of(api, EXPOSURE)
    detail = api.get(f"/api/v1/dataset/{dataset_id}").json()
    assert detail["full_name"] == "lake/credit.exposure"
    assert [item["name"] for item in detail["columns"]] == ["id", "amount"]
    assert [item["version_tag"] for item in detail["versions"]] == [
        "2026-09-03.1",
        "2026-09-02.1",
        "2026-09-01.1",
    ]
    assert detail["versions"][0]["row_count"] == 100
    assert [item["process_key"] for item in detail["producers"]] == ["AUTOSYS/BOX/COMPUTE"]
    assert [item["process_key"] for item in detail["consumers"]] == ["AUTOSYS/BOX/PUBLISH"]


def test_a_dataset_is_found_by_its_name_too(api: TestClient) -> None:
    by_name = api.get("/api/v1/dataset", params={"full_name": "lake/credit.exposure"})
    by_number = api.get(f"/api/v1/dataset/{by_name.json()['dataset_id']}")
    assert by_name.json() == by_number.json()
    unknown = api.get("/api/v1/dataset", params={"full_name": "credit.exposur"})
    assert unknown.status_code == 404
    assert "Did you mean 'credit.exposure'?" in unknown.json()["detail"]


def test_datasets_are_searched_and_listed_page_by_page(api: TestClient) -> None:
    # The search index is updated when idle.
    deadline = time.monotonic() + 20
    while not (matches := api.get("/api/v1/datasets", params={"text": "expo"}).json())["items"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert [hit["name"] for hit in matches["items"]] == [EXPOSURE]
    assert matches["total"] == 1
    names, query = [], {"limit": "1"}
    for _ in range(3):
        page = api.get("/api/v1/datasets", params=query).json()
        names += [hit["name"] for hit in page["items"]]
        query["cursor"] = page["next"]
    assert names == [EXPOSURE, POSITIONS, REPORT]
    assert query["cursor"] is None


def test_filters_apply_to_every_page(changed: TestClient) -> None:
    dataset_id = number_of(changed, REPORT)
    change = {"category": "report", "owner_team": "Reporting", "tags": ["daily", "board"]}
    assert changed.patch(f"/api/v1/dataset/{dataset_id}", json=change).status_code == 200
    for query in (
        {"category": "report"},
        {"team": "Reporting", "facets": "false"},
        {"tag": "board"},
        {"status": "ACTIVE", "category": "report", "facets": "false"},
    ):
        matches = changed.get("/api/v1/datasets", params=query).json()["items"]
        assert [(hit["name"], hit["tags"]) for hit in matches] == [(REPORT, ["board", "daily"])]


def test_versions_are_listed_and_returned_by_id_and_tag(api: TestClient) -> None:
    dataset_id = number_of(api, EXPOSURE)
    first = api.get(f"/api/v1/dataset/{dataset_id}/versions", params={"limit": 2}).json()
    rest = api.get(
        f"/api/v1/dataset/{dataset_id}/versions", params={"limit": 2, "cursor": first["next"]}
    ).json()
    assert len(first["items"]) == 2
    assert [item["version_tag"] for item in rest["items"]] == ["2026-09-01.1"]
    assert rest["next"] is None
    version = rest["items"][0]
    by_number = api.get(f"/api/v1/version/{version['dataset_version_id']}").json()
    by_tag = api.get(f"/api/v1/dataset/{dataset_id}/version", params={"tag": "2026-09-01.1"}).json()
    assert by_number == by_tag
    assert by_number["produced_by_run_id"] == run_id(COMPUTE)
    assert [column["name"] for column in by_number["columns"]] == ["id", "amount"]


def test_retracting_a_version_restores_the_previous_one(changed: TestClient) -> None:
    report = {"dataset_name": "credit.limits", "business_date": "2026-09-01"}
    for _ in range(2):
        changed.post("/api/v1/register_dataset", json=report)
    dataset_id = number_of(changed, "credit.limits")
    newest, older = changed.get(f"/api/v1/dataset/{dataset_id}/versions").json()["items"]
    assert (newest["state"], older["state"]) == ("READY", "SUPERSEDED")
    path = f"/api/v1/version/{newest['dataset_version_id']}/retract"
    answer = changed.post(path, json={"reason": "wrong"})
    assert answer.json() == {
        "retracted": newest["version_tag"],
        "ready_again": older["version_tag"],
        "still_shown": False,
        "built_on": [],
    }
    listed = changed.get(f"/api/v1/dataset/{dataset_id}/versions").json()["items"]
    assert [(item["reason"], item["actor"] is not None) for item in listed] == [
        ("wrong", True),
        (None, False),
    ]
    detail = changed.get(f"/api/v1/version/{newest['dataset_version_id']}").json()
    assert detail["reason"] == "wrong"
    shown = changed.get(f"/api/v1/dataset/{dataset_id}").json()["versions"]
    assert shown[0]["reason"] == "wrong"
    again = changed.post(path, json={"reason": "wrong"})
    assert again.status_code == 409
    history = changed.get(f"/api/v1/dataset/{dataset_id}/history").json()["items"]
    assert "VERSION_RETRACTED" in [item["event_type"] for item in history]


def test_a_retraction_lists_the_versions_built_on_it(changed: TestClient) -> None:
    """The list includes indirect versions, each with its owner."""
    for run, read, output in (("r1", "risk.a", "risk.b"), ("r2", "risk.b", "risk.c")):
        if run == "r1":
            feed = {"dataset_name": read, "version": "2026-09-01.1", "business_date": "2026-09-01"}
            changed.post("/api/v1/register_dataset", json=feed)
        event = {
            "eventType": "COMPLETE",
            "eventTime": "2026-09-01T06:30:00Z",
            "producer": "https://example.com/jobs",
            "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
            "run": {"runId": run, "facets": {"floe": {"businessDate": "2026-09-01"}}},
            "job": {"namespace": "AUTOSYS", "name": run},
            "inputs": [dataset_part(read, "2026-09-01.1")],
            "outputs": [dataset_part(output, "2026-09-01.1")],
        }
        assert changed.post("/api/v1/lineage", json=event).status_code == 201
    dataset_id = number_of(changed, "risk.c")
    changed.patch(f"/api/v1/dataset/{dataset_id}", json={"owner_team": "Market Risk"})
    dataset_id = number_of(changed, "risk.a")
    (feed_version,) = changed.get(f"/api/v1/dataset/{dataset_id}/versions").json()["items"]
    path = f"/api/v1/version/{feed_version['dataset_version_id']}/retract"
    built_on = changed.post(path, json={"reason": "wrong feed"}).json()["built_on"]
    assert [
        (
            item["full_name"],
            item["version_tag"],
            item["process_key"],
            item["owner_team"],
            item["depth"],
        )
        for item in built_on
    ] == [
        ("lake/risk.b", "2026-09-01.1", "AUTOSYS/r1", None, 1),
        ("lake/risk.c", "2026-09-01.1", "AUTOSYS/r2", "Market Risk", 2),
    ]


def dataset_part(name: str, tag: str) -> dict[str, Any]:
    return {
        "namespace": "lake",
        "name": name,
        "facets": {"version": {"datasetVersion": tag}},
    }


def test_schemas_are_listed_and_compared(api: TestClient) -> None:
    dataset_id = number_of(api, EXPOSURE)
    schemas = api.get(f"/api/v1/dataset/{dataset_id}/schemas").json()["items"]
    assert [column["name"] for column in schemas[0]["columns"]] == ["id", "amount"]
    compared = api.get(
        f"/api/v1/dataset/{dataset_id}/schemas/diff",
        params={"before": "2026-09-01.1", "after": "2026-09-02.1"},
    ).json()
    assert (compared["breaking"], compared["added"], compared["removed"]) == (False, [], [])


def test_schemas_are_listed_page_by_page(changed: TestClient) -> None:
    for day, column in (("2026-09-04", "a"), ("2026-09-05", "b")):
        body = event(day=day)
        body["outputs"][0]["facets"]["schema"]["fields"] = [{"name": column, "type": "BIGINT"}]
        changed.post("/api/v1/lineage", json=body)
    seen = walk(changed, f"/api/v1/dataset/{number_of(changed, EXPOSURE)}/schemas")
    columns = [[column["name"] for column in schema["columns"]] for schema in seen]
    assert columns == [["b"], ["a"], ["id", "amount"]]


def test_checks_and_sla_breaches_are_listed_page_by_page(
    changed: TestClient, catalog: Catalog
) -> None:
    names = [f"lake/credit.{name}" for name in ("exposure", "positions", "report")]
    with catalog.writing() as session:
        hourly = sla(session, "hourly", sla_window_sec=3600)
        for name in names:
            update_dataset(session, find_dataset(session, name), default_sla_id=hourly)
        for name in ("not_null", "no_negative", "unique"):
            put_check(session, number_of(changed, EXPOSURE), name, kind="sql")
    checks = walk(changed, f"/api/v1/dataset/{number_of(changed, EXPOSURE)}/checks")
    assert [item["name"] for item in checks] == ["no_negative", "not_null", "unique"]
    late = walk(changed, "/api/v1/sla/status")
    assert [item["full_name"] for item in late] == names


def walk(client: TestClient, path: str) -> list[dict[str, Any]]:
    """Return all items of a list, read with one item per page."""
    items, cursor = [], None
    while True:
        query = {"limit": 1} | ({"cursor": cursor} if cursor else {})
        page = client.get(path, params=query).json()
        (item,) = page["items"]
        items.append(item)
        if (cursor := page["next"]) is None:
            return items


@pytest.mark.parametrize("position", ["['0001-01-01T00:00:00+14:00', 'x']", "['2026-09-01', 'x']"])
def test_a_cursor_with_an_invalid_date_is_rejected(api: TestClient, position: str) -> None:
    cursor = base64.urlsafe_b64encode(position.replace("'", '"').encode()).decode()
    path = f"/api/v1/dataset/{number_of(api, EXPOSURE)}/schemas"
    assert api.get(path, params={"cursor": cursor}).status_code == 400


def test_processes_are_listed_by_key_and_returned_with_their_runs(api: TestClient) -> None:
    first = api.get("/api/v1/processes", params={"limit": 2, "status": "ACTIVE"}).json()
    rest = api.get("/api/v1/processes", params={"cursor": first["next"]}).json()
    keys = [item["process_key"] for item in first["items"] + rest["items"]]
    assert keys == ["AUTOSYS/BOX/COMPUTE", "AUTOSYS/BOX/LOAD", "AUTOSYS/BOX/PUBLISH"]
    process_id = first["items"][0]["process_id"]
    detail = api.get(f"/api/v1/process/{process_id}").json()
    assert detail == api.get("/api/v1/process", params={"process_key": keys[0]}).json()
    assert (detail["inputs"], detail["outputs"]) == (
        ["lake/credit.positions"],
        ["lake/credit.exposure"],
    )
    assert [run["business_date"] for run in detail["runs"]] == list(reversed(DAYS))


def test_runs_are_filtered(api: TestClient) -> None:
    def found(**query: object) -> list[str]:
        answer = api.get("/api/v1/runs", params=query)  # type: ignore[arg-type]
        assert answer.status_code == 200, answer.text
        return [
            f"{item['process_key'][12:]} {item['business_date']}" for item in answer.json()["items"]
        ]

    assert len(found()) == 9
    assert found(process_key="AUTOSYS/BOX/COMPUTE", business_date="2026-09-02") == [
        "COMPUTE 2026-09-02"
    ]
    assert found(state=["FAILED", "CANCELLED"]) == []
    assert len(found(state=["SUCCESS", "FAILED"])) == 9
    assert len(found(since="2026-09-02T00:00:00Z", until="2026-09-03T00:00:00+00:00")) == 3
    assert found(parent=run_id(COMPUTE)) == []
    assert api.get("/api/v1/runs", params={"since": "2026-09-02T00:00:00"}).status_code == 422


def test_runs_are_listed_page_by_page_without_duplicates(api: TestClient) -> None:
    seen, cursor = [], None
    for _ in range(3):
        query = {"limit": 4} | ({"cursor": cursor} if cursor else {})
        page = api.get("/api/v1/runs", params=query).json()
        seen += [item["run_id"] for item in page["items"]]
        cursor = page["next"]
    assert cursor is None
    assert len(seen) == len(set(seen)) == 9


def test_a_run_lists_its_inputs_and_outputs(api: TestClient) -> None:
    run = api.get(f"/api/v1/run/{run_id(COMPUTE)}").json()
    assert run["status"] == "SUCCESS"
    assert run["start_ts"].startswith("2026-09-01T06:00:00")
    assert run["facets_json"]["nominalTime"]
    assert [item["full_name"] for item in run["inputs"]] == ["lake/credit.positions"]
    assert [(item["full_name"], item["version_tag"]) for item in run["outputs"]] == [
        ("lake/credit.exposure", "2026-09-01.1")
    ]
    assert run["steps"] == []


def test_run_details_contain_everything_about_a_run(api: TestClient) -> None:
    run = api.get(f"/api/v1/run/{run_id(COMPUTE)}").json()
    details = api.get(f"/api/v1/run/{run_id(COMPUTE)}/details").json()
    assert {name: details[name] for name in run} == run
    assert (details["seconds"], details["attempt"]) == (1800.0, 1)
    assert details["children"] == details["checks"] == []
    assert api.get(f"/api/v1/run/{run_id('nobody')}/details").status_code == 404


def test_lineage_goes_both_ways_from_datasets_and_processes(api: TestClient) -> None:
    def keys(path: str, **query: object) -> list[str]:
        graph = api.get(f"/api/v1/{path}", params=query).json()  # type: ignore[arg-type]
        return [node["name"] for node in graph["nodes"]]

    dataset_id = number_of(api, POSITIONS)
    down = [POSITIONS, "BOX/COMPUTE", EXPOSURE, "BOX/PUBLISH", REPORT]
    assert keys(f"dataset/{dataset_id}/lineage") == down
    assert keys("dataset/lineage", full_name=POSITIONS) == down
    assert keys(f"dataset/{dataset_id}/lineage", depth=1) == down[:3]
    assert keys(f"dataset/{dataset_id}/lineage", direction="upstream") == [POSITIONS, "BOX/LOAD"]
    assert keys(f"dataset/{dataset_id}/lineage", show="datasets") == down[::2]
    process = api.get("/api/v1/process", params={"process_key": "BOX/COMPUTE"}).json()["process_id"]
    assert keys(f"process/{process}/lineage") == down[1:]
    upstream = keys("process/lineage", process_key="BOX/COMPUTE", direction="upstream")
    assert upstream == ["BOX/COMPUTE", POSITIONS, "BOX/LOAD"]
    assert api.get("/api/v1/dataset/9999/lineage").status_code == 404


def test_an_edge_has_its_role_and_origin(api: TestClient) -> None:
    dataset_id = number_of(api, POSITIONS)
    graph = api.get(f"/api/v1/dataset/{dataset_id}/lineage", params={"depth": 1}).json()
    stopped = [node["name"] for node in graph["nodes"] if node["more"]]
    assert (stopped, graph["truncated"]) == ([EXPOSURE], True)
    edge, _ = graph["edges"]
    assert (edge["source_id"], edge["role"], edge["known_by"]) == (
        dataset_id,
        "CONSUMES",
        ["OBSERVED"],
    )


def test_columns_have_their_own_lineage(api: TestClient) -> None:
    dataset_id = number_of(api, REPORT)
    lineage = api.get(
        f"/api/v1/dataset/{dataset_id}/columns/lineage", params={"column": "amount"}
    ).json()
    assert [(item["dataset"], item["column"]) for item in lineage["columns"]] == [
        (REPORT, "amount"),
        (EXPOSURE, "amount"),
        (POSITIONS, "amount"),
    ]
    unknown = api.get(f"/api/v1/dataset/{dataset_id}/columns/lineage", params={"column": "amuont"})
    assert unknown.status_code == 404


def test_impact_counts_what_is_downstream(changed: TestClient) -> None:
    changed.patch(f"/api/v1/dataset/{number_of(changed, REPORT)}", json={"owner_team": "Reporting"})
    impact = changed.get(f"/api/v1/dataset/{number_of(changed, POSITIONS)}/impact").json()
    assert [item["name"] for item in impact["datasets"]] == [EXPOSURE, REPORT]
    assert [item["team"] for item in impact["teams"]] == ["Reporting"]


def test_events_are_listed_and_returned_as_received(api: TestClient) -> None:
    of_run = api.get("/api/v1/events", params={"run_uuid": run_id(COMPUTE)}).json()["items"]
    assert [item["event_type"] for item in of_run] == ["run.complete", "run.start"]
    query = {"process_key": "AUTOSYS/BOX/COMPUTE", "since": "2026-09-02T00:00:00Z", "limit": "3"}
    page = api.get("/api/v1/events", params=query).json()
    rest = api.get("/api/v1/events", params={**query, "cursor": page["next"]}).json()
    assert len(page["items"]) == 3
    assert len(rest["items"]) == 1
    body = api.get(f"/api/v1/event/{of_run[0]['event_id']}").json()["body"]
    assert body["run"]["runId"] == run_id(COMPUTE)
    assert api.get("/api/v1/event/999999").status_code == 404


def test_changes_are_read_from_a_position(api: TestClient) -> None:
    first = api.get("/api/v1/changes", params={"limit": 4}).json()
    assert [item["position"] for item in first["items"]] == [1, 2, 3, 4]
    rest = api.get("/api/v1/changes", params={"after": first["next"]}).json()
    assert rest["items"][0]["position"] == 5
    assert {item["kind"] for item in rest["items"]} == {"VERSION_READY"}
    nothing = api.get("/api/v1/changes", params={"after": rest["next"], "wait": 0.3}).json()
    assert nothing == {"items": [], "next": rest["next"]}


def test_owners_and_categories_are_counted(changed: TestClient) -> None:
    for name, team in (
        (EXPOSURE, "Credit Risk"),
        (POSITIONS, "Credit Risk"),
        (REPORT, "Reporting"),
    ):
        change = {"owner_team": team, "category": "credit"}
        changed.patch(f"/api/v1/dataset/{number_of(changed, name)}", json=change)
    assert changed.get("/api/v1/categories").json()["items"] == [{"value": "credit", "datasets": 3}]
    first = changed.get("/api/v1/owners", params={"limit": 1}).json()
    assert first["items"] == [{"value": "Credit Risk", "datasets": 2}]
    rest = changed.get("/api/v1/owners", params={"cursor": first["next"]}).json()
    assert rest == {"items": [{"value": "Reporting", "datasets": 1}], "next": None}


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/dataset/{dataset}/checks",
        "/api/v1/dataset/{dataset}/check-results",
        "/api/v1/drift",
        "/api/v1/sla/status",
        "/api/v1/registrations",
    ],
)
def test_lists_without_items_are_empty(api: TestClient, path: str) -> None:
    answer = api.get(path.format(dataset=number_of(api, EXPOSURE)))
    assert answer.status_code == 200
    assert answer.json()["items"] == []


def test_the_catalog_is_ready_and_counts_itself(api: TestClient) -> None:
    assert api.get("/api/v1/readiness").json()["status"] == "ready"
    counts = api.get("/api/v1/stats").json()["counts"]
    assert (counts["datasets"], counts["runs"], counts["events"]) == (3, 9, 18)
