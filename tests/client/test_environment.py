"""What the client reads from a job's environment, and where it sends its token."""

from pathlib import Path

import pytest

from floe.client import Client
from floe.client.environment import DEFAULT_LIMIT, read_environment
from tests.client.fake_api import FakeApi


def test_defaults_are_the_local_api_and_a_spool_in_the_users_state_folder() -> None:
    settings = read_environment({"HOME": "/home/batch"})
    assert settings.url == "http://127.0.0.1:8765"
    assert settings.spool == Path("/home/batch/.local/state/floe/spool")
    assert (settings.token, settings.lake, settings.spool_limit) == (None, "lake", DEFAULT_LIMIT)


def test_xdg_state_home_is_used() -> None:
    settings = read_environment({"XDG_STATE_HOME": "/var/state"})
    assert settings.spool == Path("/var/state/floe/spool")


@pytest.mark.parametrize(
    ("text", "limit"),
    [("1000", 1000), ("64M", 64 << 20), ("2GB", 2 << 30), ("much", DEFAULT_LIMIT)],
)
def test_the_limit_of_the_spool_is_read_with_its_unit(text: str, limit: int) -> None:
    assert read_environment({"FLOE_SPOOL_LIMIT": text}).spool_limit == limit


def keep(folder: Path, **files: str) -> None:
    """Write the files that `floe api` stores in a project."""
    (folder / ".floe").mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / ".floe" / name).write_text(f"{text}\n")


def test_the_projects_token_is_only_sent_to_its_own_api(host: Path) -> None:
    keep(host, token="secret", address="http://127.0.0.1:4711")
    assert read_environment({}).token == "secret"
    assert read_environment({"FLOE_PROJECT": str(host)}).token == "secret"
    assert read_environment({"FLOE_API_URL": "http://localhost:4711/"}).token == "secret"
    for url in ("https://floe.example.com:4711", "http://127.0.0.1:8765", "http://[::1:4711"):
        assert read_environment({"FLOE_API_URL": url}).token is None
        assert read_environment({}, url=url).token is None
    assert read_environment({"FLOE_API_TOKEN": "mine"}, url="http://127.0.0.1:1").token == "mine"


def test_while_the_projects_api_is_down_its_token_is_not_sent(host: Path) -> None:
    keep(host, token="secret")
    settings = read_environment({})
    assert (settings.url, settings.token) == ("http://127.0.0.1:8765", None)


def test_a_token_is_only_sent_to_the_address_in_the_same_folder(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(host, token="above", address="http://127.0.0.1:4711")
    keep(host / "below", token="below")
    monkeypatch.chdir(host / "below")
    settings = read_environment({})
    assert (settings.url, settings.token) == ("http://127.0.0.1:4711", "above")


def test_a_client_with_another_address_does_not_send_the_projects_token(
    host: Path,
) -> None:
    keep(host, token="secret", address="http://127.0.0.1:4711")
    with FakeApi() as elsewhere:
        assert Client(elsewhere.url).register_dataset("night.t").delivered
    assert elsewhere.tokens == [None]


def test_the_address_of_the_projects_api_is_found(host: Path) -> None:
    keep(host, address="http://127.0.0.1:4711")
    assert read_environment({}).url == "http://127.0.0.1:4711"
    assert read_environment({"FLOE_PROJECT": str(host)}).url == "http://127.0.0.1:4711"
    assert read_environment({"FLOE_API_URL": "http://127.0.0.1:1"}).url == "http://127.0.0.1:1"


def test_an_address_file_cannot_redirect_reports_and_tokens_to_another_host(host: Path) -> None:
    keep(host, address="https://elsewhere.example.com", token="secret")
    settings = read_environment({})
    assert (settings.url, settings.token) == ("http://127.0.0.1:8765", None)
