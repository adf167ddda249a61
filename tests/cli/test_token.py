"""`floe token`, as a user types it, in a folder without a project."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from floe.cli import app
from floe.errors import FloeError


@pytest.fixture(autouse=True)
def _fresh_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    for name in ("FLOE_CATALOG_URL", "FLOE_PROJECT"):
        monkeypatch.delenv(name, raising=False)


def floe(*words: str) -> Result:
    return CliRunner().invoke(app, words, catch_exceptions=False)


def test_a_token_is_printed_alone() -> None:
    printed = floe("token", "create", "--name", "etl", "--role", "ingest").stdout
    assert re.fullmatch(r"floe_[\w-]{43}\n", printed)


def test_tokens_are_listed_without_their_secret(tmp_path: Path) -> None:
    made = floe("token", "create", "--name", "anna", "--role", "DATA_OWNER", "--expires", "90d")
    assert "no token yet" not in floe("token", "list").stdout
    listed = json.loads(floe("token", "list", "--json").stdout)
    assert [(one["name"], one["role"], one["scopes"]) for one in listed] == [
        ("anna", "DATA_OWNER", "all")
    ]
    assert listed[0]["expires_at"] is not None
    assert made.stdout.strip() not in floe("token", "list").stdout
    assert (tmp_path / ".floe" / "catalog.db").is_file()


def test_the_catalogs_folder_is_private(tmp_path: Path) -> None:
    floe("token", "list")
    assert (tmp_path / ".floe").stat().st_mode & 0o777 == 0o700


def test_an_empty_list_prints_how_to_create_a_token() -> None:
    assert "floe token create" in floe("token", "list").stdout


def test_a_token_is_revoked_once() -> None:
    floe("token", "create", "--name", "etl", "--role", "INGEST")
    assert floe("token", "revoke", "1").stdout == "Token 1 is revoked.\n"
    assert floe("token", "revoke", "1").stdout == "Token 1 was already revoked.\n"
    assert json.loads(floe("token", "list", "--json").stdout)[0]["revoked_at"] is not None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--role", "KING"), "Unknown role 'KING'"),
        (("--role", "INGEST", "--expires", "soon"), "Invalid lifetime 'soon'"),
        (("--role", "INGEST", "--expires", "9999999d"), "Invalid lifetime"),
        (("--role", "INGEST", "--expires", "0d"), "Invalid lifetime '0d'"),
        (("--role", "INGEST", "--name", ""), "A token needs a name"),
        (("--role", "INGEST", "--name", " "), "A token needs a name"),
        (("--role", "INGEST", "--scope", "write"), "Unknown scope 'write'"),
    ],
)
def test_invalid_options_are_refused(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(FloeError, match=said):
        floe("token", "create", "--name", "x", *words)


def test_a_refused_call_creates_no_token() -> None:
    with pytest.raises(FloeError):
        floe("token", "create", "--role", "INGEST", "--name", "")
    assert json.loads(floe("token", "list", "--json").stdout) == []


@pytest.mark.parametrize("expires", ["2s", "90m", "12h", "90d", "52w", "1h30m", "365250d"])
def test_every_valid_lifetime_creates_a_token(expires: str) -> None:
    made = floe("token", "create", "--name", "e", "--role", "INGEST", "--expires", expires)
    assert (made.exit_code, made.stdout.startswith("floe_")) == (0, True)


@pytest.mark.parametrize("expires", ["999999999w", "365251d", "0s", "", "-1d", "1y", "1.5h"])
def test_an_invalid_lifetime_creates_no_token(expires: str) -> None:
    with pytest.raises(FloeError, match="Invalid lifetime") as refused:
        floe("token", "create", "--name", "e", "--role", "INGEST", "--expires", expires)
    assert refused.value.exit_code == 2
    assert json.loads(floe("token", "list", "--json").stdout) == []
