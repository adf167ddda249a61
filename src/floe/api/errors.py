"""Errors of requests that are rejected before they reach the catalog."""

from collections.abc import Sequence
from dataclasses import dataclass

from floe.errors import FloeError


@dataclass(frozen=True)
class Fault:
    """One problem of a request, and where it is."""

    path: str
    message: str


class BadBodyError(FloeError):
    """The body does not match its content type."""


class InvalidValueError(FloeError):
    """A value of the request is invalid."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(f"{fault.path}: {fault.message}" for fault in faults))


class BadCursorError(FloeError):
    """A cursor is not from the previous page."""

    def __init__(self, cursor: str) -> None:
        super().__init__(
            f"'{cursor}' is not a cursor of this list. Use `next` of the previous page, "
            "or omit the cursor to start from the beginning."
        )


class TooLargeError(FloeError):
    """The body is too large."""

    def __init__(self, what: str, allowed: int, unit: str = "bytes") -> None:
        super().__init__(
            f"{what} must have at most {allowed:,} {unit}. Split it into smaller requests."
        )


class WrongTypeError(FloeError):
    """The content type or encoding of the body is not supported."""

    def __init__(self, value: str, wanted: Sequence[str], header: str = "Content-Type") -> None:
        problem = f"'{value}' is not supported" if value else "is missing"
        super().__init__(f"{header} {problem}. Send {' or '.join(wanted)}.")


class UnauthorizedError(FloeError):
    """The request has no valid token."""

    def __init__(self, *, token_given: bool) -> None:
        problem = (
            "This token is unknown, expired or revoked." if token_given else "A token is required."
        )
        super().__init__(
            f"{problem} Send 'Authorization: Bearer TOKEN'; create one with: "
            "floe token create --name NAME --role ROLE"
        )


class SessionEndedError(UnauthorizedError):
    """The session cookie is no longer valid."""

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
    """A page of another site used a browser's session."""

    def __init__(self, origin: str | None) -> None:
        sender = "The request has no Origin header" if origin is None else origin
        problem = "" if origin is None else " is not a page of this server"
        super().__init__(
            f"{sender}{problem}. With a session, only this server's own pages may do this; "
            "programs must send 'Authorization: Bearer TOKEN'."
        )


class UnknownHostError(FloeError):
    """The Host header does not name this server."""

    def __init__(self, host: str) -> None:
        named = f"'{host[:200]}'" if host else "no host, or an invalid one"
        super().__init__(
            f"The request is for {named}, which is not a name of this server. "
            "Use localhost or an IP address, or set the public address as `url` in platform.yaml "
            "(under `api`, or `orchestrator` for Dagster)."
        )


class ForbiddenError(FloeError):
    """The caller is not allowed to do this."""

    def __init__(self, name: str, action: str, needed: Sequence[str]) -> None:
        super().__init__(f"'{name}' may not {action}. Required role: {' or '.join(needed)}.")


class AddressBlockedError(FloeError):
    """Too many invalid tokens came from one address."""

    def __init__(self, retry_after: int) -> None:
        self.retry_after = retry_after
        super().__init__(
            f"Too many invalid tokens from this address. Try again in {retry_after} seconds."
        )


class ForeignSiteError(FloeError):
    """Without login, a request came from another site or under another host name."""

    def __init__(self) -> None:
        super().__init__(
            "This API runs without login and accepts only requests from this machine to localhost. "
            "Start it without --no-auth to access it from elsewhere."
        )
