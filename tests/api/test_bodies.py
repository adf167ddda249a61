"""Bodies: what they may be called, and what becomes of those that end too early."""

import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from floe.api import create_app
from floe.catalog.database import Catalog
from floe.execution.spark.processes import wait_until
from tests.api.night import event
from tests.api.serving import served
from tests.events.factory import FOREVER

BATCH = "/api/v1/lineage/batch"


class Server:
    """A real server, and somebody whose token it believes."""

    def __init__(self, url: str, token: str) -> None:
        self._address = urlsplit(url)
        self._token = token
        self.client = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"})

    def hang_up(self, path: str) -> None:
        """Promise more of a body than is sent, and go."""
        place = (self._address.hostname or "", self._address.port or 0)
        with socket.create_connection(place) as connection:
            connection.sendall(
                f"POST {path} HTTP/1.1\r\nHost: localhost\r\n"
                f"Authorization: Bearer {self._token}\r\n"
                'Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"eventType'.encode()
            )

    def counted(self, operation: str) -> list[str]:
        """The statuses of an operation."""
        lines = self.client.get("/metrics").text.splitlines()
        start = f'floe_http_requests_total{{operation="{operation}",status='
        return [line.split('"')[3] for line in lines if line.startswith(start)]


@pytest.fixture
def server(catalog: Catalog, tokens: dict[str, str]) -> Iterator[Server]:
    with served(create_app(catalog, retention=FOREVER)) as url:
        server = Server(url, tokens["PLATFORM_ADMIN"])
        assert server.client.get("/api/v1/me").status_code == 200
        yield server
        server.client.close()


@pytest.mark.parametrize(
    ("path", "operation"),
    [
        ("/api/v1/lineage", "send_event"),
        ("/api/v1/lineage?historical=false", "send_event"),
        (BATCH, "send_batch"),
        ("/api/v1/register_dataset", "register_dataset"),
    ],
)
def test_one_who_hangs_up_in_the_middle_of_a_body_is_no_mistake_of_ours(
    server: Server, path: str, operation: str, capfd: pytest.CaptureFixture[str]
) -> None:
    server.hang_up(path)
    assert wait_until(lambda: bool(server.counted(operation)), 10)
    assert server.counted(operation) == ["499"]
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    "kind", ["application/x-ndjson", "application/ndjson", "application/NDJSON; charset=utf-8"]
)
def test_lines_of_json_are_known_by_both_their_names(admin: httpx.Client, kind: str) -> None:
    line = json.dumps(event()).encode() + b"\n"
    answer = admin.post(BATCH, content=line, headers={"Content-Type": kind})
    assert (answer.status_code, answer.json()["summary"]["successful"]) == (200, 1)


def test_lines_of_json_are_no_single_event(admin: httpx.Client) -> None:
    headers = {"Content-Type": "application/ndjson"}
    answer = admin.post("/api/v1/lineage", content=json.dumps(event()), headers=headers)
    assert answer.status_code == 415
    assert "'application/ndjson'" in answer.json()["detail"]
