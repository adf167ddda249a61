"""Bodies: media types, and clients that disconnect too early."""

import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from floe.api import create_app
from floe.catalog.database import Catalog
from floe.execution.os_processes import wait_until
from tests.api.night import event
from tests.api.serving import served
from tests.events.factory import FOREVER

BATCH = "/api/v1/lineage/batch"


class Server:
    """A real server, and a valid token."""

    def __init__(self, url: str, token: str) -> None:
        self._address = urlsplit(url)
        self._token = token
        self.client = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"})

    def hang_up(self, path: str) -> None:
        """Send less than Content-Length, and disconnect."""
        address = (self._address.hostname or "", self._address.port or 0)
        with socket.create_connection(address) as connection:
            connection.sendall(
                f"POST {path} HTTP/1.1\r\nHost: localhost\r\n"
                f"Authorization: Bearer {self._token}\r\n"
                'Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"eventType'.encode()
            )

    def counted(self, operation: str) -> list[str]:
        """Return the counted statuses of an operation."""
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
def test_a_client_that_disconnects_during_the_body_is_not_a_server_error(
    server: Server, path: str, operation: str, capfd: pytest.CaptureFixture[str]
) -> None:
    server.hang_up(path)
    assert wait_until(lambda: bool(server.counted(operation)), 10)
    assert server.counted(operation) == ["499"]
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    "kind", ["application/x-ndjson", "application/ndjson", "application/NDJSON; charset=utf-8"]
)
def test_both_media_types_of_ndjson_are_accepted(admin: httpx.Client, kind: str) -> None:
    line = json.dumps(event()).encode() + b"\n"
    answer = admin.post(BATCH, content=line, headers={"Content-Type": kind})
    assert (answer.status_code, answer.json()["summary"]["successful"]) == (200, 1)


def test_ndjson_is_rejected_for_a_single_event(admin: httpx.Client) -> None:
    headers = {"Content-Type": "application/ndjson"}
    answer = admin.post("/api/v1/lineage", content=json.dumps(event()), headers=headers)
    assert answer.status_code == 415
    assert "'application/ndjson'" in answer.json()["detail"]
