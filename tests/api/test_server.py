"""Listening: on this machine unless said otherwise, and never without login for others."""

import socket

import pytest

from floe.api.gate import is_loopback
from floe.api.server import AddressError, AddressTakenError, UnsafeAddressError, listen, url_of


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.com"])
def test_others_are_not_let_in_without_login(host: str) -> None:
    with pytest.raises(UnsafeAddressError, match="Leave out --no-auth"):
        listen(host, 0, login=False)


def test_this_machine_may_do_without_login() -> None:
    with listen("127.0.0.1", 0, login=False) as listener:
        assert url_of(listener).startswith("http://127.0.0.1:")


def test_another_address_is_fine_with_login() -> None:
    with listen("0.0.0.0", 0, login=True) as listener:
        assert url_of(listener) == f"http://{socket.gethostname()}:{listener.getsockname()[1]}"


def test_a_taken_port_is_said_so() -> None:
    with listen("127.0.0.1", 0, login=True) as first:
        port = first.getsockname()[1]
        with pytest.raises(AddressTakenError, match=f"Port {port} of 127.0.0.1 is taken"):
            listen("127.0.0.1", port, login=True)


def test_an_address_that_is_not_ours_is_said_so() -> None:
    with pytest.raises(AddressError, match=r"Cannot listen on 192\.0\.2\.1:0"):
        listen("192.0.2.1", 0, login=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_is_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "localhost.evil.example", ""])
def test_nothing_else_is_this_machine(host: str) -> None:
    assert not is_loopback(host)
