"""The two calls of old jobs."""

import pytest
from starlette.testclient import TestClient

from tests.api.night import newest_version


def test_one_call_registers_a_version(admin: TestClient) -> None:
    report = {"dataset_name": "credit.positions", "version": "2026-09-01", "rows": 12}
    answer = admin.post("/api/v1/register_dataset", json=report)
    assert answer.status_code == 201
    version = newest_version(admin, "lake/credit.positions")
    assert (version["version_tag"], version["state"]) == ("2026-09-01", "READY")
    assert version["produced_by_run_id"] == answer.json()["run_id"]
    assert version["row_count"] == 12


def test_the_same_call_again_changes_nothing(admin: TestClient) -> None:
    report = {"dataset_name": "credit.positions", "version": "2026-09-01"}
    first, second = (admin.post("/api/v1/register_dataset", json=report) for _ in range(2))
    assert first.json() == second.json()
    assert admin.get("/api/v1/stats").json()["counts"]["versions"] == 1


def test_calls_with_one_run_id_are_about_one_run(admin: TestClient) -> None:
    for status in ("STARTED", "SUCCESS"):
        report = {
            "process_name": "AUTOSYS/BOX/JOB",
            "status": status,
            "run_id": "4711",
            "inputs": ["credit.positions"],
            "outputs": [{"name": "credit.exposure", "rows": 5}],
        }
        answer = admin.post("/api/v1/register_process", json=report)
        assert answer.status_code == 201
    run = admin.get(f"/api/v1/run/{answer.json()['run_id']}").json()
    assert (run["status"], run["process_key"]) == ("SUCCESS", "AUTOSYS/BOX/JOB")
    assert [one["full_name"] for one in run["inputs"]] == ["lake/credit.positions"]
    assert [one["row_count"] for one in run["outputs"]] == [5]


@pytest.mark.parametrize(
    ("path", "report", "said"),
    [
        ("register_process", {"process_name": "A/B", "status": "DONE"}, "'DONE' is not a status"),
        ("register_process", {"status": "SUCCESS"}, "missing required field `process_name`"),
        ("register_process", {"process_name": "JOB", "status": "SUCCESS"}, "lacks a namespace"),
        ("register_dataset", {"dataset_name": "a", "tidings": 1}, "unknown field `tidings`"),
        ("register_dataset", {"dataset_name": "a", "rows": -1}, "$.rows"),
        ("register_dataset", {"dataset_name": "a\x00b"}, "$.dataset_name"),
    ],
)
def test_a_call_that_makes_no_sense_is_told_why(
    admin: TestClient, path: str, report: dict[str, object], said: str
) -> None:
    answer = admin.post(f"/api/v1/{path}", json=report)
    assert answer.status_code == 422
    assert said in answer.json()["detail"]
