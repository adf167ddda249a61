"""Examples of shapes, for the OpenAPI document: one night of a credit risk team."""

from typing import Any

_RUN_ID = "0190a0f2-7b1c-7cc3-8f36-3c1f1d2c9a51"
_VERSION: dict[str, Any] = {
    "dataset_version_id": 412,
    "version_tag": "2026-09-01.1",
    "business_date": "2026-09-01",
    "partition_key": None,
    "state": "READY",
    "row_count": 12345,
    "size_bytes": 1234500,
    "schema_hash": "9f2c…",
    "produced_by_run_id": _RUN_ID,
    "produced_at": "2026-09-02T05:40:00Z",
}
_RUN: dict[str, Any] = {
    "run_id": 88,
    "run_uuid": _RUN_ID,
    "process_id": 5,
    "process_key": "AUTOSYS/BOX/COMPUTE",
    "business_date": "2026-09-01",
    "partition_key": None,
    "start_ts": "2026-09-02T05:20:00Z",
    "end_ts": "2026-09-02T05:40:00Z",
    "status": "SUCCESS",
    "attempt": 1,
    "parent_run_uuid": None,
    "historical": False,
}
_HIT = {
    "dataset_id": 17,
    "name": "credit.exposure",
    "full_name": "lake/credit.exposure",
    "description": "Exposure by counterparty.",
    "category": "credit",
    "format": "ICEBERG",
    "team": "Credit Risk",
    "email": "credit-risk@example.com",
    "status": "ACTIVE",
    "tags": ["daily"],
}
_PROCESS = {"process_id": 5, "process_key": "AUTOSYS/BOX/COMPUTE", "name": "COMPUTE", "team": None}
_NODE = {
    "type": "DATASET",
    "id": 17,
    "name": "credit.exposure",
    "key": "lake/credit.exposure",
    "status": "ACTIVE",
    "team": "Credit Risk",
    "technology": "ICEBERG",
    "depth": 0,
}
_REQUEST = {
    "namespace": "lake",
    "name": "credit.exposure",
    "category": "credit",
    "owner_team": "Credit Risk",
    "comment": "Needed for the monthly report.",
}

EXAMPLES: dict[str, Any] = {
    "DatasetPage": {
        "items": [_HIT],
        "next": "WyJjcmVkaXQuZXhwb3N1cmUiLDE3XQ",
        "total": 1,
        "facets": {"category": [{"value": "credit", "count": 1}]},
        "suggestions": [],
    },
    "DatasetDetail": {
        "dataset_id": 17,
        "namespace": "lake",
        "name": "credit.exposure",
        "full_name": "lake/credit.exposure",
        "description": "Exposure by counterparty.",
        "category": "credit",
        "default_format": "ICEBERG",
        "owner_team": "Credit Risk",
        "owner_email": "credit-risk@example.com",
        "status": "ACTIVE",
        "timezone": "Europe/London",
        "needs_validation": False,
        "curated": True,
        "schema_hash": "9f2c…",
        "declaration_json": None,
        "created_by": "credit-risk",
        "created_at": "2026-08-01T09:00:00Z",
        "updated_at": None,
        "tags": ["daily"],
        "sla": "by 06:30 Europe/London",
        "columns": [{"name": "amount", "type": "DECIMAL", "nullable": False, "metadata": None}],
        "versions": [_VERSION],
        "producers": [_PROCESS],
        "consumers": [],
    },
    "DatasetChange": {"owner_team": "Credit Risk", "tags": ["daily"]},
    "DatasetRequest": _REQUEST,
    "DatasetReport": {"dataset_name": "credit.positions", "version": "2026-09-01", "rows": 12},
    "ProcessReport": {
        "process_name": "AUTOSYS/BOX/COMPUTE",
        "status": "SUCCESS",
        "run_id": "4711",
        "inputs": ["credit.positions"],
        "outputs": ["credit.exposure"],
    },
    "Reported": {"run_id": _RUN_ID},
    "VersionPage": {"items": [_VERSION], "next": None},
    "Retraction": {"reason": "Computed with the rates of the day before."},
    "Retracted": {"retracted": "2026-09-01.2", "ready_again": "2026-09-01.1", "still_shown": False},
    "RunPage": {"items": [_RUN], "next": None},
    "LineageGraph": {
        "nodes": [_NODE],
        "edges": [
            {
                "source_type": "PROCESS",
                "source_id": 5,
                "target_type": "DATASET",
                "target_id": 17,
                "role": "PRODUCES",
                "known_by": ["DECLARED", "OBSERVED"],
                "via": None,
            }
        ],
        "truncated": False,
    },
    "ChangePage": {
        "items": [
            {
                "position": 1041,
                "kind": "VERSION_READY",
                "dataset_id": 17,
                "dataset_version_id": 412,
                "process_id": None,
                "run_id": 88,
                "business_date": "2026-09-01",
                "partition_key": None,
                "occurred_at": "2026-09-02T05:40:01Z",
                "detail_json": None,
            }
        ],
        "next": 1041,
    },
    "BatchAnswer": {
        "status": "partial_success",
        "summary": {
            "received": 2,
            "successful": 1,
            "failed": 1,
            "retriable": 0,
            "non_retriable": 1,
        },
        "failed_events": [{"index": 1, "reason": "$.run.runId: is missing", "retriable": False}],
    },
    "Decision": {"comment": "Owner and category are right."},
    "RegistrationItem": {
        "reg_id": 3,
        "dataset_id": 17,
        "submitted_by": "anna",
        "submitted_at": "2026-09-01T09:00:00Z",
        "status": "APPROVED",
        "reviewer": "steward",
        "reviewed_at": "2026-09-01T10:00:00Z",
        "review_comment": None,
        "request_json": _REQUEST,
        "full_name": "lake/credit.exposure",
    },
    "Problem": {
        "type": "urn:floe:problem:not-found",
        "title": "Not Found",
        "status": 404,
        "detail": "No dataset named 'credit.exposur' is registered. Did you mean …?",
    },
}
