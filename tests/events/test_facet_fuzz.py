"""Facet content never breaks the event door: events are stored or rejected."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice

import pytest
from starlette.testclient import TestClient

from floe.api import create_app
from floe.catalog.database import Catalog
from floe.events.errors import BadEventError
from floe.events.ingest import EventDoor, read_claim
from tests.events.facet_fuzz import (
    VALUES,
    each_field_of_each_type,
    list_spots,
    several_fields_at_random,
)
from tests.events.factory import FOREVER, at, event

# Some of them in every run; `make soak` sends all, and as many random ones in each round.
ROUNDS = int(os.environ.get("FLOE_SOAK_ROUNDS", "0"))
STRIDE = 1 if ROUNDS else 13
AT_RANDOM = 300
GROUP = 100


def outcomes(door: EventDoor, bodies: Iterable[bytes]) -> Counter[str]:
    """Submit events in groups, and count the outcomes."""
    counts: Counter[str] = Counter()
    waiting = iter(bodies)
    while group := list(islice(waiting, GROUP)):
        claims = []
        for body in group:
            try:
                claims.append(read_claim(body))
            except BadEventError:
                counts["refused"] += 1
        wrong = door.submit(claims).result(timeout=120)
        counts["stored"] += len(claims) - len(wrong)
        counts.update(f"{type(error).__name__}: {error}" for error in wrong.values())
    return counts


def fuzzed() -> Iterator[bytes]:
    yield from islice(each_field_of_each_type(), 0, None, STRIDE)
    for seed in range(1, ROUNDS + 2):
        yield from several_fields_at_random(seed, AT_RANDOM)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_every_field_of_every_facet_can_have_any_type(catalog: Catalog) -> None:
    with closing(EventDoor(catalog)) as door:
        counts = outcomes(door, fuzzed())
        assert door.submit([read_claim(event("START", at(0), "after"))]).result(timeout=60) == {}
    # Only invalid JSON is rejected, such as half a surrogate pair.
    assert set(counts) <= {"stored", "refused"}
    assert counts["stored"] > 9 * counts["refused"]


def test_the_fuzz_covers_all_facets_and_types() -> None:
    assert 2 * len(list_spots()) * len(VALUES) == sum(1 for _ in each_field_of_each_type())
    assert len(list_spots()) > 250


def test_fuzzed_events_over_http_get_201_or_4xx_and_stored_ones_can_be_read(
    catalog: Catalog,
) -> None:
    app = create_app(catalog, login=False, retention=FOREVER)
    headers = {"Host": "127.0.0.1", "Content-Type": "application/json"}
    with TestClient(app, headers=headers, raise_server_exceptions=False) as client:
        for body in islice(each_field_of_each_type(), 0, None, 121):
            status = client.post("/api/v1/lineage", content=body).status_code
            assert status == 201 or 400 <= status < 500, body
        assert client.get("/api/v1/readiness").status_code == 200
        listed = client.get("/api/v1/events", params={"limit": 200}).json()["items"]
        for item in listed:
            assert client.get(f"/api/v1/event/{item['event_id']}").status_code == 200
            assert client.get(f"/api/v1/run/{item['run_uuid']}").status_code == 200
        for path in ("datasets", "processes", "runs", "stats"):
            assert client.get(f"/api/v1/{path}").status_code == 200, path
