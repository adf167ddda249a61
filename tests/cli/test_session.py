"""`floe session`, as a user types it, in a folder without a project."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from floe.cli import app
from floe.cli.context import write_secret
from floe.errors import FloeError

ADDRESS = "http://127.0.0.1:8765"


@pytest.fixture(autouse=True)
def _fresh_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    for name in ("FLOE_CATALOG_URL", "FLOE_PROJECT"):
        monkeypatch.delenv(name, raising=False)


def floe(*words: str) -> Result:
    return CliRunner().invoke(app, words, catch_exceptions=False)


@pytest.fixture
def anna(tmp_path: Path) -> None:
    """The owner of the folder's token, where an API is running."""
    token = floe("token", "create", "--name", "anna", "--role", "DATA_OWNER").stdout.strip()
    write_secret(tmp_path / ".floe" / "token", token)
    write_secret(tmp_path / ".floe" / "address", ADDRESS)


@pytest.mark.usefixtures("anna")
def test_a_link_is_for_the_owner_of_the_token_and_is_listed_without_its_secret() -> None:
    link = floe("session", "link").stdout.strip()
    assert link.startswith(f"{ADDRESS}/login#link=")
    assert json.loads(floe("session", "link", "--json").stdout)["link"].startswith(ADDRESS)
    listed = json.loads(floe("session", "list", "--json").stdout)
    assert [(row["name"], row["opened_at"]) for row in listed] == [("anna", None)] * 2
    assert link.rpartition("=")[2] not in floe("session", "list").stdout
    assert floe("session", "revoke", "1").stdout == "Session 1 is revoked.\n"
    assert floe("session", "revoke", "1").stdout == "Session 1 was already revoked.\n"


@pytest.mark.usefixtures("anna")
def test_a_link_for_another_user_is_created_by_name() -> None:
    floe("token", "create", "--name", "bob", "--role", "DATA_CONSUMER")
    floe("session", "link", "--name", "bob")
    assert json.loads(floe("session", "list", "--json").stdout)[0]["name"] == "bob"
    with pytest.raises(FloeError, match="No active user named 'carl'"):
        floe("session", "link", "--name", "carl")


def test_errors_name_the_next_command(tmp_path: Path) -> None:
    assert "floe session link" in floe("session", "list").stdout
    with pytest.raises(FloeError, match="floe up"):
        floe("session", "link")
    write_secret(tmp_path / ".floe" / "address", ADDRESS)
    with pytest.raises(FloeError, match="--name NAME"):
        floe("session", "link")
    with pytest.raises(FloeError, match="No session with id 7"):
        floe("session", "revoke", "7")
