"""What can be wrong with a request before it reaches the catalog, and what to do then."""

from collections.abc import Sequence
from dataclasses import dataclass

from floe.errors import FloeError


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a request, and where."""

    path: str
    message: str


class BadBodyError(FloeError):
    """The body cannot be read as what it says it is."""


class UnfitValueError(FloeError):
    """A value of the request does not fit."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(f"{fault.path}: {fault.message}" for fault in faults))


class BadCursorError(FloeError):
    """A cursor did not come from the page before."""

    def __init__(self, cursor: str) -> None:
        super().__init__(
            f"'{cursor}' is no cursor of this list. Take `next` from the page before, "
            "or leave it out to start from the beginning."
        )


class TooLargeError(FloeError):
    """The body is larger than is allowed."""

    def __init__(self, what: str, allowed: int, unit: str = "bytes") -> None:
        super().__init__(
            f"{what} may have {allowed:,} {unit}, and this has more. Send it in parts."
        )


class WrongTypeError(FloeError):
    """The body is of a type or an encoding that is not taken here."""

    def __init__(self, found: str, wanted: Sequence[str]) -> None:
        said = f"is '{found}'" if found else "is missing"
        super().__init__(f"The type of the body {said}. Send {' or '.join(wanted)}.")


class UnauthorizedError(FloeError):
    """Nobody knows who is asking."""

    def __init__(self, *, token_given: bool) -> None:
        said = "This token is unknown, expired or revoked." if token_given else "A token is needed."
        super().__init__(
            f"{said} Send 'Authorization: Bearer TOKEN'; make one with: "
            "floe token create --name NAME --role ROLE"
        )


class SessionOverError(UnauthorizedError):
    """The cookie of a browser is no longer valid."""

    def __init__(self) -> None:
        FloeError.__init__(
            self,
            "Your session has ended or was revoked. Log in again: get a link with "
            "'floe session link', or use a token.",
        )


class LoginRefusedError(FloeError):
    """A login link or token was not accepted."""

    def __init__(self) -> None:
        super().__init__(
            "This login link is unknown, expired or already used. "
            "Get a new one with: floe session link"
        )


class NoSessionError(FloeError):
    """There is no session to log out of."""

    def __init__(self) -> None:
        super().__init__(
            "This request has no session, so there is nothing to log out of. "
            "To end a token, run: floe token revoke ID"
        )


class CrossOriginError(FloeError):
    """A page of another site used the session of a browser."""

    def __init__(self, origin: str | None) -> None:
        sender = "The request does not say which page sent it" if origin is None else origin
        refused = "" if origin is None else " is not a page of this server"
        super().__init__(
            f"{sender}{refused}. With a session, only this server's own pages may do this; "
            "programs send 'Authorization: Bearer TOKEN' instead."
        )


class UnknownHostError(FloeError):
    """A request names a server that this one is not."""

    def __init__(self, host: str) -> None:
        named = f"'{host[:200]}'" if host else "no host, or an invalid one"
        super().__init__(
            f"The request is for {named}, which is not a name of this server. "
            "Use localhost or an IP address, or set the public address as `url` in platform.yaml "
            "(under `api`, or `orchestrator` for Dagster)."
        )


class ForbiddenError(FloeError):
    """The one who is asking may not do this."""

    def __init__(self, name: str, action: str, needed: Sequence[str]) -> None:
        super().__init__(f"'{name}' may not {action}. That takes: {' or '.join(needed)}.")


class AddressBlockedError(FloeError):
    """Too many wrong tokens came from one address."""

    def __init__(self, retry_after: int) -> None:
        self.retry_after = retry_after
        super().__init__(
            f"Too many wrong tokens came from this address. Try again in {retry_after} seconds."
        )


class ForeignSiteError(FloeError):
    """A browser was sent here by another site while nobody has to log in."""

    def __init__(self) -> None:
        super().__init__(
            "This API runs without login and answers only to this machine by its own name. "
            "Start it without --no-auth to reach it from elsewhere."
        )
