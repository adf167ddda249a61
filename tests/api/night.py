"""A small night of runs: a feed, a job that computes exposures, and a report."""

import uuid
from typing import Any

from starlette.testclient import TestClient

POSITIONS, EXPOSURE, REPORT = "credit.positions", "credit.exposure", "credit.report"
LOAD, COMPUTE, PUBLISH = "LOAD", "COMPUTE", "PUBLISH"

FLOW = {
    LOAD: ([], [POSITIONS]),
    COMPUTE: ([POSITIONS], [EXPOSURE]),
    PUBLISH: ([EXPOSURE], [REPORT]),
}


def run_id(job: str, day: str = "2026-09-01") -> str:
    """Return the run id of a job on a day."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{job}/{day}"))


def event(job: str = COMPUTE, kind: str = "COMPLETE", day: str = "2026-09-01") -> dict[str, Any]:
    """Return an event of a job."""
    inputs, outputs = FLOW[job]
    return {
        "eventType": kind,
        "eventTime": f"{day}T06:{'00' if kind == 'START' else '30'}:00Z",
        "producer": "urn:test",
        "run": {
            "runId": run_id(job, day),
            "facets": {"nominalTime": {"nominalStartTime": f"{day}T00:00:00Z"}},
        },
        "job": {"namespace": "AUTOSYS", "name": f"BOX/{job}"},
        "inputs": [dataset(name) for name in inputs],
        "outputs": [dataset(name, inputs) for name in outputs],
    }


def dataset(name: str, read: list[str] | None = None) -> dict[str, Any]:
    """Return a lake dataset with two columns and their column lineage."""
    fields = [{"name": "id", "type": "BIGINT"}, {"name": "amount", "type": "DECIMAL"}]
    part: dict[str, Any] = {
        "namespace": "lake",
        "name": name,
        "facets": {"schema": {"fields": fields}},
    }
    if read:
        part["facets"]["columnLineage"] = {
            "fields": {
                "amount": {
                    "inputFields": [{"namespace": "lake", "name": read[0], "field": "amount"}]
                }
            }
        }
        part["outputFacets"] = {"outputStatistics": {"rowCount": 100, "size": 2000}}
    return part


def tell(client: TestClient, *days: str) -> None:
    """Send the events of the whole night, for each of these days."""
    for day in days or ("2026-09-01",):
        events = [event(job, kind, day) for job in FLOW for kind in ("START", "COMPLETE")]
        answer = client.post("/api/v1/lineage/batch", json=events)
        assert answer.json()["status"] == "success", answer.text


def number_of(client: TestClient, name: str) -> int:
    """Return the id of a dataset."""
    dataset_id: int = client.get("/api/v1/dataset", params={"full_name": name}).json()["dataset_id"]
    return dataset_id


def newest_version(client: TestClient, name: str) -> dict[str, Any]:
    """Return the newest version of a dataset."""
    detail = client.get("/api/v1/dataset", params={"full_name": name}).json()
    version: dict[str, Any] = detail["versions"][0]
    return version
