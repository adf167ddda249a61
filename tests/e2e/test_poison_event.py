"""Bad events among good ones, from senders that retry: the good ones are stored once."""

import http.client
import json
import sqlite3
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from sqlalchemy import make_url

from tests.conftest import STORES
from tests.e2e.test_door_faults import counted
from tests.events.factory import event, read, recently, written
from tools.running_api import RunningApi

if TYPE_CHECKING:
    from tools.postgresql import PostgresqlServer

EVENTS, SENDERS, RETRIES = 1_000, 8, 5
POISON = 617
# Make the database refuse the events of one job, as it refuses a value that does not fit.
REFUSES = {
    "sqlite": (
        "CREATE TRIGGER poison BEFORE INSERT ON process "
        "WHEN NEW.process_key = 'AUTOSYS/poison' BEGIN SELECT RAISE(ABORT, 'poison'); END"
    ),
    "postgresql": (
        "ALTER TABLE process ADD CONSTRAINT poison CHECK (process_key <> 'AUTOSYS/poison')"
    ),
}


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'catalog.db'}"
        return
    server: PostgresqlServer = request.getfixturevalue("postgresql")
    name = f"poison_{uuid.uuid4().hex}"
    yield server.create_database(name)
    server.drop_database(name)


def refuse_poison(url: str) -> None:
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        with closing(sqlite3.connect(str(parsed.database))) as connection:
            connection.execute(REFUSES["sqlite"])
    else:
        plain = parsed.set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(plain) as server:
            server.execute(REFUSES["postgresql"])


def night() -> list[bytes]:
    """Events, one of which the database refuses, and one with an invalid facet."""
    bodies = [
        event(
            "COMPLETE",
            recently(index % 60),
            f"run {index}",
            "poison" if index == POISON else f"job {index % 9}",
            inputs=[read(f"in.t{index % 5}")],
            outputs=[written(f"out.t{index % 3}", rows=index)],
        )
        for index in range(EVENTS)
    ]
    misfit = json.loads(bodies[100])
    misfit["job"]["facets"]["ownership"] = {"owners": 5}
    bodies[100] = json.dumps(misfit).encode()
    return bodies


def send_until_answered(api: RunningApi, bodies: list[bytes]) -> Counter[int]:
    """Send events over one connection; retry and drop them as a client does."""
    statuses: Counter[int] = Counter()
    with closing(http.client.HTTPConnection("127.0.0.1", api.port, timeout=60)) as connection:
        for body in bodies:
            for _ in range(RETRIES):
                connection.request("POST", "/api/v1/lineage", body, api.headers)
                with connection.getresponse() as answer:
                    answer.read()
                    status = answer.status
                if status < 500:
                    break
            statuses[status] += 1
    return statuses


@pytest.mark.slow
def test_one_poison_event_among_a_thousand_is_refused_and_all_others_are_stored(
    url: str, tmp_path: Path
) -> None:
    with RunningApi(tmp_path, url) as api:
        refuse_poison(url)
        writer, bodies = api.writer_pid, night()
        parts = [bodies[index::SENDERS] for index in range(SENDERS)]
        with ThreadPoolExecutor(SENDERS) as pool:
            answers = list(pool.map(lambda part: send_until_answered(api, part), parts))
        assert sum(answers, Counter()) == {201: EVENTS - 1, 422: 1}
        assert api.writer_pid == writer
    counts = counted(url)
    assert counts["events"] == counts["runs"] == EVENTS - 1
    assert "Traceback" not in (tmp_path / "api.log").read_text()
