"""What the client takes from the job's surroundings, and whom it gives its token."""

from pathlib import Path

import pytest

from floe.client.environment import DEFAULT_LIMIT, look_around


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


def test_the_projects_own_token_goes_to_this_host_only(host: Path) -> None:
    (host / ".floe").mkdir()
    (host / ".floe" / "token").write_text("secret\n")
    below = host / "sql"
    below.mkdir()
    assert look_around({}).token == "secret"
    assert look_around({"FLOE_PROJECT": str(host)}).token == "secret"
    assert look_around({"FLOE_API_URL": "https://floe.example.com"}).token is None
    assert look_around({"FLOE_API_TOKEN": "mine"}).token == "mine"


def test_the_projects_own_api_is_found_where_it_listens(host: Path) -> None:
    (host / ".floe").mkdir()
    (host / ".floe" / "address").write_text("http://127.0.0.1:4711\n")
    assert look_around({}).url == "http://127.0.0.1:4711"
    assert look_around({"FLOE_PROJECT": str(host)}).url == "http://127.0.0.1:4711"
    assert look_around({"FLOE_API_URL": "http://127.0.0.1:1"}).url == "http://127.0.0.1:1"


def test_a_folder_cannot_send_reports_and_tokens_to_another_host(host: Path) -> None:
    (host / ".floe").mkdir()
    (host / ".floe" / "address").write_text("https://elsewhere.example.com\n")
    assert look_around({}).url == "http://127.0.0.1:8765"
