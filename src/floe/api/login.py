"""The login page, and the exchange of a login link or token for a session cookie.

Used by floe's API and by the guard of Dagster's web interface.
"""

import base64
import hashlib
from datetime import datetime

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from floe import clock
from floe.api.bodies import JSON, check_type
from floe.api.errors import BadBodyError, Fault, InvalidValueError, TooLargeError
from floe.api.gate import Gate
from floe.api.hosts import Hosts
from floe.api.responses import reply

LOGIN_PATH = "/login"
SESSION_PATH = "/api/v1/session"
MOST_BYTES = 10_000

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 30em; margin: 15vh auto; padding: 0 1em }
input, button { font: inherit; padding: .4em .6em } input { width: 100%; box-sizing: border-box }
button { margin-top: .6em } #problem { color: #b00020 }
"""
# The link's secret comes after the #, so it never appears in a request line or server log.
SCRIPT = """
const problem = document.getElementById("problem");
async function open(credentials) {
  const answer = await fetch("/api/v1/session", {
    method: "POST",
    headers: {"Content-Type": "application/json"},
    body: JSON.stringify(credentials),
  });
  if (answer.ok) {
    location.replace(location.pathname === "/login" ? "/" : location.pathname + location.search);
  } else {
    problem.textContent = (await answer.json()).detail;
  }
}
document.getElementById("form").addEventListener("submit", (event) => {
  event.preventDefault();
  open({token: document.getElementById("token").value.trim()});
});
const link = new URLSearchParams(location.hash.slice(1)).get("link");
if (link) {
  history.replaceState(null, "", location.pathname);
  open({link});
}
"""
PAGE = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Log in to floe</title>
<style>{STYLE}</style></head><body>
<h1>Log in to floe</h1>
<p>Open the link that <code>floe session link</code> prints, or enter your token.</p>
<form id="form"><label>Token <input id="token" type="password" autocomplete="off" required></label>
<button>Log in</button></form>
<p id="problem" role="alert"></p>
<noscript><p>This page needs JavaScript.</p></noscript>
<script>{SCRIPT}</script></body></html>
"""


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


PAGE_HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; script-src {_source(SCRIPT)}; style-src {_source(STYLE)}; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Credentials(msgspec.Struct):
    """Opens a session: either a one-time login link or a token."""

    link: str | None = None
    token: str | None = None


class OpenedSession(msgspec.Struct):
    """A new session. Its secret is only in the cookie."""

    session_id: int
    name: str
    expires_at: datetime


def login_link(url: str, secret: str) -> str:
    """Return the one-time login URL."""
    return f"{url.rstrip('/')}{LOGIN_PATH}#link={secret}"


def login_page(status: int = 200) -> Response:
    """Return the login page."""
    return HTMLResponse(PAGE, status, PAGE_HEADERS)


async def open_session(request: Request, gate: Gate, hosts: Hosts) -> Response:
    """Exchange a login link or token for a session with an HttpOnly cookie."""
    wanted = await _read_credentials(request)
    opened = await gate.open_session(request, link=wanted.link, token=wanted.token)
    answer = reply(OpenedSession(opened.session_id, opened.principal, opened.expires_at), 201)
    answer.set_cookie(
        gate.cookie_name(),
        opened.secret,
        max_age=int((opened.expires_at - clock.now()).total_seconds()),
        path="/",
        secure=hosts.is_https(request),
        httponly=True,
        # Not strict, so that a link to a run in an e-mail or chat works when the reader is logged
        # in. Requests that change anything also need this server's own Origin.
        samesite="lax",
    )
    return answer


async def close_session(request: Request, gate: Gate) -> Response:
    """Log out: end the browser's session and remove its cookie."""
    await gate.close_session(request)
    answer = Response(status_code=204)
    answer.delete_cookie(gate.cookie_name(), path="/", httponly=True, samesite="lax")
    return answer


async def _read_credentials(request: Request) -> Credentials:
    check_type(request, JSON)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise TooLargeError("This body", MOST_BYTES)
    try:
        wanted = msgspec.json.decode(bytes(body), type=Credentials)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at ")
        raise InvalidValueError([Fault(path.strip("`") or "$", message)]) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadBodyError(f"The body is not JSON: {str(error).rstrip('.')}.") from error
    if bool(wanted.link) == bool(wanted.token):
        raise InvalidValueError([Fault("$", "needs either `link` or `token`")])
    return wanted
