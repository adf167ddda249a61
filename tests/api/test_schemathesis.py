"""Fuzzing of the API: valid and invalid requests never crash the server."""

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.testclient import TestClient

from floe.api import create_app, describe_api
from floe.catalog.database import Catalog
from floe.catalog.principals import PLATFORM_ADMIN, create_token
from tests.api.night import tell
from tests.api.serving import served

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
# A few in every run; `make soak` sends many.
EXAMPLES = 100 if "FLOE_SOAK_ROUNDS" in os.environ else 6


@pytest.fixture
def address(catalog: Catalog) -> Iterator[tuple[str, dict[str, str]]]:
    """A server with data of one night, and headers of its administrator."""
    with catalog.writing() as session:
        token = create_token(session, "admin", PLATFORM_ADMIN, actor="test").text
    headers = {"Authorization": f"Bearer {token}"}
    with TestClient(create_app(catalog), "http://127.0.0.1", headers=headers) as client:
        tell(client)
    with served(create_app(catalog)) as url:
        yield url, headers


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_no_request_makes_the_server_fail(address: tuple[str, dict[str, str]]) -> None:
    url, headers = address
    schema = schemathesis.openapi.from_dict(describe_api())
    wrong = []
    for result in schema.get_all_operations():
        assert isinstance(result, Ok), result
        operation = result.ok()
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

            @settings(
                max_examples=EXAMPLES,
                deadline=None,
                derandomize=True,
                database=None,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.explicit, Phase.generate],
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def ask(case: "Case[Any]") -> None:
                if "wait" in (case.query or {}):
                    case.query["wait"] = 0
                case.call_and_validate(base_url=url, headers=headers, checks=CHECKS)

            try:
                # A route without parameters cannot get an invalid one.
                with suppress(Unsatisfiable):
                    ask()
            except (Failure, FailureGroup) as error:
                wrong.append(f"{operation.label}: {error}")
    assert not wrong, "\n".join(wrong)
