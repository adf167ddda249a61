"""What the client takes from the job's surroundings, and whom it gives its token."""

from pathlib import Path

import pytest

from floe.client import Client
from floe.client.environment import DEFAULT_LIMIT, look_around
from tests.client.fake_api import FakeApi


def test_a_bare_host_reports_to_itself_and_spools_in_the_users_state() -> None:
    around = look_around({"HOME": "/home/batch"})
    assert around.url == "http://127.0.0.1:8765"
    assert around.spool == Path("/home/batch/.local/state/floe/spool")
    assert (around.token, around.lake, around.spool_limit) == (None, "lake", DEFAULT_LIMIT)


def test_the_state_folder_of_the_desktop_standard_is_used() -> None:
    around = look_around({"XDG_STATE_HOME": "/var/state"})
    assert around.spool == Path("/var/state/floe/spool")


@pytest.mark.parametrize(
    ("text", "limit"),
    [("1000", 1000), ("64M", 64 << 20), ("2GB", 2 << 30), ("much", DEFAULT_LIMIT)],
)
def test_the_limit_of_the_spool_is_read_with_its_unit(text: str, limit: int) -> None:
    assert look_around({"FLOE_SPOOL_LIMIT": text}).spool_limit == limit


def keep(folder: Path, **kept: str) -> None:
    """Leave in a folder what `floe api` keeps there."""
    (folder / ".floe").mkdir(parents=True, exist_ok=True)
    for name, text in kept.items():
        (folder / ".floe" / name).write_text(f"{text}\n")


def test_the_projects_own_token_goes_to_its_own_api_only(host: Path) -> None:
    keep(host, token="secret", address="http://127.0.0.1:4711")
    assert look_around({}).token == "secret"
    assert look_around({"FLOE_PROJECT": str(host)}).token == "secret"
    assert look_around({"FLOE_API_URL": "http://localhost:4711/"}).token == "secret"
    for url in ("https://floe.example.com:4711", "http://127.0.0.1:8765", "http://[::1:4711"):
        assert look_around({"FLOE_API_URL": url}).token is None
        assert look_around({}, url=url).token is None
    assert look_around({"FLOE_API_TOKEN": "mine"}, url="http://127.0.0.1:1").token == "mine"


def test_while_the_projects_own_api_is_down_its_token_goes_nowhere(host: Path) -> None:
    keep(host, token="secret")
    around = look_around({})
    assert (around.url, around.token) == ("http://127.0.0.1:8765", None)


def test_a_token_goes_to_the_address_beside_it_and_not_to_one_above(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(host, token="above", address="http://127.0.0.1:4711")
    keep(host / "below", token="below")
    monkeypatch.chdir(host / "below")
    around = look_around({})
    assert (around.url, around.token) == ("http://127.0.0.1:4711", "above")


def test_a_client_with_an_address_of_its_own_does_not_take_the_projects_token_there(
    host: Path,
) -> None:
    keep(host, token="secret", address="http://127.0.0.1:4711")
    with FakeApi() as elsewhere:
        assert Client(elsewhere.url).register_dataset("night.t").delivered
    assert elsewhere.tokens == [None]


def test_the_projects_own_api_is_found_where_it_listens(host: Path) -> None:
    keep(host, address="http://127.0.0.1:4711")
    assert look_around({}).url == "http://127.0.0.1:4711"
    assert look_around({"FLOE_PROJECT": str(host)}).url == "http://127.0.0.1:4711"
    assert look_around({"FLOE_API_URL": "http://127.0.0.1:1"}).url == "http://127.0.0.1:1"


def test_a_folder_cannot_send_reports_and_tokens_to_another_host(host: Path) -> None:
    keep(host, address="https://elsewhere.example.com", token="secret")
    around = look_around({})
    assert (around.url, around.token) == ("http://127.0.0.1:8765", None)
