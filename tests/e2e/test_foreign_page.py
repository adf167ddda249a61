"""A foreign page, in a real browser that is logged in to Dagster."""

import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browsers import open_page

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

FLOE = (sys.executable, "-m", "floe.cli")
ASSETS = """
from dagster import DynamicPartitionsDefinition, asset


@asset(partitions_def=DynamicPartitionsDefinition(name="regions"))
def hello() -> None: ...
"""
FLOE_YAML = """
name: night
orchestration:
  asset_modules: [assets]
  partitions: {regions: {type: dynamic}}
"""
ADD = """mutation { addDynamicPartition(
  repositorySelector: {repositoryLocationName: "night", repositoryName: "__repository__"},
  partitionsDefName: "regions", partitionKey: "%s") { __typename } }"""
REFUSED = ("Failed to load", "WebSocket", "CORS", "ERR_", "Refused to", "violates", "Cross-Origin")
LOADS = 60_000
# Every way in which a page can make the browser send a request with cookies to another server.
ATTACK = """
async ([url, add]) => {
  const outcomes = {};
  const settle = (name, promise) => promise.then(
    (value) => { outcomes[name] = String(value); }, () => { outcomes[name] = "refused"; });
  const element = (tag, address) => new Promise((resolve, reject) => {
    const made = document.createElement(tag);
    made.onload = () => resolve("loaded"); made.onerror = reject;
    made.src = address; document.body.append(made);
  });
  const query = (name) => encodeURIComponent(add.replace("%s", name));
  const body = (name) => JSON.stringify({query: add.replace("%s", name)});
  await settle("image", element("img", `${url}/graphql?query=${query("image")}`));
  await settle("script", element("script", `${url}/graphql?query=${query("script")}`));
  await settle("get", fetch(`${url}/graphql?query=${query("get")}`,
    {mode: "no-cors", credentials: "include"}).then((answer) => answer.type));
  await settle("plain", fetch(`${url}/graphql`, {method: "POST", mode: "no-cors",
    credentials: "include", headers: {"Content-Type": "text/plain"}, body: body("plain")})
    .then((answer) => answer.type));
  await settle("json", fetch(`${url}/graphql`, {method: "POST", credentials: "include",
    headers: {"Content-Type": "application/json"}, body: body("json")})
    .then((answer) => answer.status));
  await settle("read", fetch(`${url}/server_info`, {credentials: "include"})
    .then((answer) => answer.text()));
  await settle("socket", new Promise((resolve, reject) => {
    const socket = new WebSocket(url.replace("http", "ws") + "/graphql", "graphql-ws");
    socket.onopen = () => resolve("open"); socket.onerror = reject;
  }));
  return outcomes;
}
"""


def floe(folder: Path, *words: str) -> str:
    done = subprocess.run([*FLOE, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("night")
    (folder / "floe.yaml").write_text(FLOE_YAML)
    (folder / "assets.py").write_text(ASSETS)
    try:
        floe(folder, "up", "--detach", "--only", "api,dagster", "--port=0", "--dagster-port=0")
        yield folder
    finally:
        floe(folder, "down")


@pytest.fixture(scope="module")
def dagster(project: Path) -> str:
    services = json.loads(floe(project, "status", "--json"))["services"]
    return str(next(service["address"] for service in services if service["service"] == "web"))


@pytest.fixture(scope="module")
def foreign() -> Iterator[int]:
    """The port of another server on this machine, with an empty page."""

    class Empty(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><body>foreign</body>")

        def log_message(self, *words: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Empty)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.fixture
def page(project: Path, dagster: str, tmp_path: Path) -> Iterator[Page]:
    """A browser that is logged in, and resolves evil.example to this machine."""
    link = floe(project, "session", "link").strip()
    rebound = "--host-resolver-rules=MAP evil.example 127.0.0.1"
    with open_page(tmp_path, REFUSED, (rebound,)) as page:
        page.set_default_timeout(LOADS)
        page.goto(link)
        page.wait_for_url(lambda url: "/login" not in url)
        assert "#" not in page.url
        yield page


def keys(project: Path) -> set[str]:
    return set(floe(project, "partitions", "list", "regions").split())


def test_the_link_opens_dagster_and_its_own_page_may_send_mutations(
    page: Page, project: Path, dagster: str
) -> None:
    expect(page.get_by_text("Overview").or_(page.get_by_text("Catalog")).first).to_be_visible(
        timeout=LOADS
    )
    assert "floe_session" not in page.evaluate("document.cookie")
    outcomes = page.evaluate(ATTACK, [dagster, ADD])
    assert (outcomes["json"], outcomes["socket"]) == ("200", "open")
    assert keys(project) & {"image", "script", "get", "plain", "json"} == {"json"}


@pytest.mark.parametrize("host", ["evil.example", "localhost", "127.0.0.1"])
def test_a_foreign_page_can_neither_send_mutations_nor_read(
    page: Page, project: Path, dagster: str, foreign: int, host: str
) -> None:
    before = keys(project)
    page.goto(f"http://{host}:{foreign}/")
    add = ADD.replace("%s", f"{host}-%s")
    outcomes = page.evaluate(ATTACK, [dagster, add])
    # Responses to simple cross-origin requests are opaque: the page cannot read them.
    sent = {name: outcome for name, outcome in outcomes.items() if outcome != "refused"}
    assert set(sent.values()) <= {"opaque"}
    assert keys(project) == before


def test_a_rebound_host_name_is_refused(page: Page, project: Path, dagster: str) -> None:
    before = keys(project)
    port = dagster.rpartition(":")[2]
    answer = page.goto(f"http://evil.example:{port}/")
    assert answer is not None
    assert answer.status == 421
    query = quote(ADD % "rebound")
    answer = page.goto(f"http://evil.example:{port}/graphql?query={query}")
    assert answer is not None
    assert answer.status == 421
    outcomes = page.evaluate(ATTACK, [f"http://evil.example:{port}", ADD.replace("%s", "r-%s")])
    assert outcomes["json"] == "421"
    assert outcomes["socket"] == "refused"
    assert keys(project) == before


def test_a_link_from_another_site_to_a_mutation_does_nothing(
    page: Page, project: Path, dagster: str, foreign: int
) -> None:
    before = keys(project)
    page.goto(f"http://evil.example:{foreign}/")
    address = f"{dagster}/graphql?query={quote(ADD % 'followed')}"
    with page.expect_navigation():
        page.evaluate("(address) => { location.href = address; }", address)
    assert "Send GraphQL queries by POST" in page.content()
    assert keys(project) == before


def test_the_api_accepts_the_same_session(page: Page, project: Path) -> None:
    services = json.loads(floe(project, "status", "--json"))["services"]
    api = next(service["address"] for service in services if service["service"] == "api")
    page.goto(f"{api}/api/v1/me")
    assert '"name":"admin"' in page.content()
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{api}/api/v1/me")
