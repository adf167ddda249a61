"""Ports of loopback: the one that is asked for, or another that is free, and then it is said."""

import socket
from dataclasses import dataclass

from floe.services.errors import PortWantedError

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Wish:
    """A port that somebody would like."""

    what: str
    port: int
    option: str
    firm: bool
    """Whether it was asked for, and no other will do."""


def choose_port(wish: Wish) -> tuple[int, str]:
    """Return a port that is free, and what is to be said of it."""
    if wish.port != 0 and is_free(wish.port):
        return wish.port, ""
    if wish.firm and wish.port != 0:
        raise PortWantedError(wish.port, wish.what, wish.option)
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        found = int(probe.getsockname()[1])
    said = f"Port {wish.port} is taken: {wish.what} is at {found}." if wish.port else ""
    return found, said


def is_free(port: int) -> bool:
    """Tell whether a server could listen on a port."""
    with socket.socket() as probe:
        # As servers do: connections of one that has just ended are not in the way.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
