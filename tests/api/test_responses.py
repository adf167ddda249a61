"""All responses: problems, ETags, compression, headers, and unusual requests."""

import threading
import time
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from floe.api.deps import cut_page, read_id, write_cursor
from floe.api.errors import BadCursorError
from floe.api.responses import STATUSES, status_of
from floe.api.routes.changes import LONGEST_WAIT
from floe.catalog.database import Catalog
from floe.catalog.errors import RunNotFoundError
from floe.errors import FloeError
from tests.api.night import EXPOSURE, event, number_of, tell


def test_an_unknown_path_and_method_are_problems_too(admin: TestClient) -> None:
    answer = admin.get("/api/v1/nothing")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json() == {
        "type": "urn:floe:problem:not-found",
        "title": "Not Found",
        "status": 404,
        "detail": "Not Found",
    }
    answer = admin.delete("/api/v1/dataset/1")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET"
    assert answer.json()["status"] == 405


def test_an_invalid_parameter_is_named(admin: TestClient) -> None:
    answer = admin.get("/api/v1/runs", params={"limit": 0, "state": "DONE"})
    assert answer.status_code == 422
    assert {error["path"] for error in answer.json()["errors"]} == {"query.limit", "query.state.0"}


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/dataset?full_name=a%00b",
        "/api/v1/datasets?text=%00",
        "/api/v1/process?process_key=%00",
        "/api/v1/dataset/%00",
        f"/api/v1/dataset?full_name={'x' * 601}",
        f"/api/v1/datasets?text={'x' * 501}",
        f"/api/v1/dataset/{'9' * 30}",
        "/api/v1/dataset/0",
        "/api/v1/dataset/one",
        f"/api/v1/dataset/{2**63}",
        "/api/v1/run/not-a-uuid",
        "/api/v1/runs?since=0001-01-01T00:00:00%2B14:00",
        "/api/v1/runs?business_date=2026-02-30",
        "/api/v1/changes?after=-1",
        "/api/v1/changes?wait=61",
        "/api/v1/changes?wait=nan",
        f"/api/v1/dataset/lineage?full_name=a&depth={2**70}",
    ],
)
def test_values_that_cannot_be_stored_are_rejected(admin: TestClient, path: str) -> None:
    assert admin.get(path).status_code == 422


@pytest.mark.parametrize("cursor", ["x", "bm8", "LTE", "W10", "eyJhIjoxfQ", "\u00fc", "%F0%9F"])
def test_an_invalid_cursor_is_rejected(admin: TestClient, cursor: str) -> None:
    for path in ("runs", "datasets", "processes", "events", "audit", "owners", "drift"):
        answer = admin.get(f"/api/v1/{path}", params={"cursor": cursor})
        assert answer.status_code == 400, path
        assert "is not a cursor of this list" in answer.json()["detail"]


def test_a_page_is_cut_at_the_limit() -> None:
    rows = [3, 2, 1]
    assert cut_page(rows, 3, int) == (rows, None)
    page, after = cut_page(rows, 2, int)
    assert page == [3, 2]
    assert read_id(after) == 2
    with pytest.raises(BadCursorError):
        read_id(write_cursor("a text"))


def test_an_unchanged_resource_is_answered_with_304(admin: TestClient) -> None:
    tell(admin)
    path = f"/api/v1/dataset/{number_of(admin, EXPOSURE)}"
    etag = admin.get(path).headers["etag"]
    same = admin.get(path, headers={"If-None-Match": f'"other", {etag}'})
    assert (same.status_code, same.content) == (304, b"")
    assert same.headers["etag"] == etag
    admin.patch(path, json={"description": "changed"})
    changed = admin.get(path, headers={"If-None-Match": etag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != etag


def test_a_large_response_is_compressed_if_accepted(admin: TestClient) -> None:
    packed = admin.get("/api/v1/openapi.json", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    plain = admin.get("/api/v1/openapi.json", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert packed.json() == plain.json()


@pytest.mark.parametrize("path", ["/api/v1/health", "/api/v1/nothing", "/api/v1/me", "/"])
def test_responses_have_security_headers(anonymous: TestClient, path: str) -> None:
    headers = anonymous.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "private, no-cache"


def test_other_sites_have_no_access(admin: TestClient) -> None:
    asked = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    answer = admin.options("/api/v1/lineage", headers=asked)
    assert answer.status_code == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_an_error_has_the_status_of_its_nearest_class() -> None:
    class UnheardOfError(FloeError):
        """An error without its own status."""

    assert status_of(RunNotFoundError("x")) == 404
    assert status_of(UnheardOfError("x")) == 400
    assert all(400 <= status < 600 for status in STATUSES.values())


def test_an_internal_error_does_not_reveal_details(
    admin: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(_session: object) -> None:
        raise RuntimeError("the secret of the house")

    monkeypatch.setattr("floe.api.routes.health.count_rows", crash)
    answer = admin.get("/api/v1/stats")
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert "secret" not in answer.text


def test_an_unavailable_catalog_is_reported(
    catalog: Catalog, admin: TestClient, tmp_path: Path
) -> None:
    tell(admin)
    admin.app.state.services.sessions.close()  # type: ignore[attr-defined]
    catalog.close()
    path = tmp_path / "catalog.db"
    path.rename(tmp_path / "gone.db")
    for extra in tmp_path.glob("catalog.db-*"):
        extra.unlink()
    path.mkdir()
    answer = admin.get("/api/v1/runs")
    assert answer.status_code == 503
    assert answer.headers["retry-after"]
    assert admin.get("/api/v1/readiness").status_code == 503
    assert admin.get("/api/v1/health").status_code == 200


def test_a_too_large_optional_body_is_rejected(admin: TestClient) -> None:
    answer = admin.post("/api/v1/dataset/register", json={"name": "x" * 2_000_000})
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{", 400), (b"[" * 100_000, 422), (b'{"name": 1}', 422), (b"\xff", 400)],
)
def test_an_unreadable_body_is_a_client_error(admin: TestClient, body: bytes, status: int) -> None:
    headers = {"Content-Type": "application/json"}
    answer = admin.post("/api/v1/dataset/register", content=body, headers=headers)
    assert answer.status_code == status, answer.text


def test_a_waiting_request_gets_a_change_when_it_comes(admin: TestClient) -> None:
    answers = []

    def wait() -> None:
        page = admin.get("/api/v1/changes", params={"after": 0, "wait": LONGEST_WAIT}).json()
        answers.append(len(page["items"]))

    waiting = [threading.Thread(target=wait) for _ in range(3)]
    for thread in waiting:
        thread.start()
    time.sleep(0.5)
    assert answers == []
    admin.post("/api/v1/lineage", json=event())
    for thread in waiting:
        thread.join(LONGEST_WAIT / 2)
    assert answers == [1, 1, 1]


def test_a_closed_door_is_not_ready(admin: TestClient) -> None:
    door = admin.app.state.services.door  # type: ignore[attr-defined]
    assert admin.portal is not None
    admin.portal.call(door.close)
    assert admin.get("/api/v1/readiness").status_code == 503
    assert admin.post("/api/v1/lineage", json=event()).status_code == 503
