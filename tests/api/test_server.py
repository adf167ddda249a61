"""Listening addresses: loopback by default, and never public without login."""

import http.client
import socket
from pathlib import Path

import pytest

from floe.api.gate import MOST_FAILURES, is_loopback
from floe.api.server import (
    AddressError,
    AddressTakenError,
    UnsafeAddressError,
    listen,
    local_url_of,
    url_of,
)
from tools.running_api import RunningApi


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.com"])
def test_public_addresses_are_rejected_without_login(host: str) -> None:
    with pytest.raises(UnsafeAddressError, match="Remove --no-auth"):
        listen(host, 0, login=False)


def test_loopback_needs_no_login() -> None:
    with listen("127.0.0.1", 0, login=False) as listener:
        assert url_of(listener).startswith("http://127.0.0.1:")


def test_public_addresses_are_allowed_with_login() -> None:
    with listen("0.0.0.0", 0, login=True) as listener:
        assert url_of(listener) == f"http://{socket.gethostname()}:{listener.getsockname()[1]}"


@pytest.mark.parametrize(
    ("host", "own"),
    [("0.0.0.0", "127.0.0.1"), ("::", "[::1]"), ("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")],
)
def test_local_programs_use_loopback(host: str, own: str) -> None:
    with listen(host, 0, login=True) as listener:
        assert local_url_of(listener) == f"http://{own}:{listener.getsockname()[1]}"


@pytest.mark.slow
def test_a_forged_address_does_not_bypass_the_limit(tmp_path: Path) -> None:
    with RunningApi(tmp_path, f"sqlite:///{tmp_path / 'catalog.db'}") as api:
        statuses = [
            status_of_stranger(api.port, f"192.0.2.{turn}") for turn in range(MOST_FAILURES + 1)
        ]
    assert statuses == [401] * MOST_FAILURES + [429]


def status_of_stranger(port: int, pretended: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Authorization": "Bearer floe_wrong", "X-Forwarded-For": pretended}
    try:
        connection.request("GET", "/api/v1/me", headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_port_in_use_is_reported() -> None:
    with listen("127.0.0.1", 0, login=True) as first:
        port = first.getsockname()[1]
        with pytest.raises(AddressTakenError, match=f"Port {port} on 127.0.0.1 is already in use"):
            listen("127.0.0.1", port, login=True)


def test_an_unusable_address_is_reported() -> None:
    with pytest.raises(AddressError, match=r"Cannot listen on 192\.0\.2\.1:0"):
        listen("192.0.2.1", 0, login=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_addresses_are_recognized(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "localhost.evil.example", ""])
def test_other_addresses_are_not_loopback(host: str) -> None:
    assert not is_loopback(host)
