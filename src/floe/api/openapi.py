"""Build the OpenAPI document from the routes and their schemas.

Schemas are msgspec structs, because msgspec serializes several times faster than pydantic.
FastAPI provides the paths and parameters; this module adds the schemas.
"""

from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from floe.api.access import PERMISSIONS
from floe.api.bodies import JSON, NDJSON
from floe.api.responses import MEDIA_TYPE, Problem, problem_type
from floe.api.schemas.events import BatchAnswer
from floe.api.schemas.examples import EXAMPLES

REF = "#/components/schemas/{name}"
PROBLEM_REF = "#/components/responses/{name}"
# Error statuses of every route that needs a token, in addition to its own.
COMMON_STATUSES = (401, 403, 421, 422, 429, 500, 503)
PROBLEMS = (400, 401, 403, 404, 409, 413, 415, 421, 422, 429, 500, 503)
# Marks a status that a route declares itself, until the document is written.
DECLARED = "x-declared"
TITLE = "floe"
DESCRIPTION = (
    "Datasets and their versions, the processes and runs that read and write them, and the "
    "events behind them. Send OpenLineage events and query the catalog. "
    "Unknown query parameters are rejected with 422."
)

EVENT = {
    "eventType": "COMPLETE",
    "eventTime": "2026-09-01T06:30:00Z",
    "producer": "https://example.com/jobs/1.0",
    "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
    "run": {"runId": "0190a0f2-7b1c-7cc3-8f36-3c1f1d2c9a51"},
    "job": {"namespace": "AUTOSYS", "name": "BOX/JobA"},
    "inputs": [{"namespace": "DB2", "name": "SCHEMA.TABLE_A"}],
    "outputs": [{"namespace": "S3", "name": "s3://bucket/credit-out"}],
}
HISTORICAL = {
    "name": "historical",
    "in": "query",
    "required": False,
    "description": "Only add to the history; do not trigger anything.",
    "schema": {"type": "boolean", "default": False},
}

_schemas: dict[str, type] = {"Problem": Problem}


def route_docs(
    shape: type | None = None,
    *statuses: int,
    takes: type | None = None,
    may_be_empty: bool = False,
    status: int = 200,
    example: Any = None,
    media_type: str = JSON,
) -> dict[str, Any]:
    """Describe the request and response of a route, as keywords for its decorator."""
    content: dict[str, Any] = {}
    if shape is not None:
        content = {"schema": _reference(shape)}
    if example is not None:
        content["example"] = example
    answer: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    if content:
        answer["content"] = {media_type: content}
    extra: dict[str, Any] = {"responses": {str(status): answer}}
    extra["responses"].update({str(code): {} for code in COMMON_STATUSES})
    extra["responses"].update({str(code): {DECLARED: True} for code in statuses})
    if takes is not None:
        extra["requestBody"] = {
            "required": not may_be_empty,
            "content": {JSON: {"schema": _reference(takes)}},
        }
    return {"openapi_extra": extra, "status_code": status}


def event_route_docs(status: int, *, batch: bool = False) -> dict[str, Any]:
    """Describe a route that receives OpenLineage events as bytes."""
    description = (
        route_docs(BatchAnswer, 400, 413, 415, status=status)
        if batch
        else route_docs(None, 400, 413, 415, status=status)
    )
    event = {"type": "object", "description": "An OpenLineage 2 event.", "example": EVENT}
    content: dict[str, Any] = {JSON: {"schema": event}}
    if batch:
        lines = {"type": "string", "description": "One event per line."}
        content = {JSON: {"schema": {"type": "array", "items": event}}, NDJSON: {"schema": lines}}
    description["openapi_extra"]["requestBody"] = {"required": True, "content": content}
    description["openapi_extra"]["parameters"] = [HISTORICAL]
    return description


def _reference(shape: type) -> dict[str, str]:
    if shape is str or shape is dict:
        return {"type": "string" if shape is str else "object"}
    _schemas[shape.__name__] = shape
    return {"$ref": REF.format(name=shape.__name__)}


def _problem(status: int) -> dict[str, Any]:
    phrase = HTTPStatus(status).phrase
    example = {"type": problem_type(status), "title": phrase, "status": status, "detail": "…"}
    content = {"schema": _reference(Problem), "example": example}
    return {"description": phrase, "content": {MEDIA_TYPE: content}}


def write_document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document of the app."""
    document = get_openapi(
        title=TITLE, version=app.version, description=DESCRIPTION, routes=app.routes
    )
    _, schemas = msgspec.json.schema_components(_schemas.values(), ref_template=REF)
    document["components"] = {
        "schemas": {name: _with_example(name, schemas[name]) for name in sorted(schemas)},
        "responses": {_problem_name(status): _problem(status) for status in PROBLEMS},
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
    }
    for path in document["paths"].values():
        for operation in path.values():
            _finish(operation)
    return document


def _with_example(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "example": EXAMPLES[name]} if name in EXAMPLES else schema


def _finish(operation: dict[str, Any]) -> None:
    action, responses = operation["operationId"], operation["responses"]
    hidden = ("401", "403", "429") if PERMISSIONS[action].public else ()
    operation["responses"] = {
        status: _response(int(status), responses[status])
        for status in sorted(responses)
        if status not in hidden or DECLARED in responses[status]
    }
    if not PERMISSIONS[action].public:
        operation["security"] = [{"token": []}]
        operation["x-roles"] = _roles(action)


def _response(status: int, response: dict[str, Any]) -> dict[str, Any]:
    if status >= HTTPStatus.BAD_REQUEST:
        return {"$ref": PROBLEM_REF.format(name=_problem_name(status))}
    # FastAPI adds JSON with an empty schema if a route does not declare a response.
    content = {
        kind: body for kind, body in response.get("content", {}).items() if body.get("schema")
    }
    documented = {"description": response["description"]}
    return {**documented, "content": content} if content else documented


def _problem_name(status: int) -> str:
    return HTTPStatus(status).phrase.title().replace(" ", "")


def _roles(action: str) -> list[str]:
    rule = PERMISSIONS[action]
    return [*sorted(rule.everywhere), *(f"{role} (own)" for role in sorted(rule.own))]
