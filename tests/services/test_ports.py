"""A port that was asked for is that one or an error; another is moved, and it is said."""

import socket
from collections.abc import Iterator

import pytest

from floe.services.errors import PortWantedError
from floe.services.ports import HOST, Wish, choose_port, is_free


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as other:
        other.bind((HOST, 0))
        other.listen()
        yield other.getsockname()[1]


def test_a_free_port_is_taken_without_a_word() -> None:
    free, _ = choose_port(Wish("the API", 0, "--port", firm=True))
    assert choose_port(Wish("the API", free, "--port", firm=False)) == (free, "")


def test_a_taken_port_is_moved_and_said(taken: int) -> None:
    port, said = choose_port(Wish("the API", taken, "--port", firm=False))
    assert port != taken
    assert is_free(port)
    assert said == f"Port {taken} is taken: the API is at {port}."


def test_a_taken_port_that_was_asked_for_is_an_error(taken: int) -> None:
    with pytest.raises(PortWantedError, match=rf"Port {taken}, asked for the API, .*--port 0"):
        choose_port(Wish("the API", taken, "--port", firm=True))
