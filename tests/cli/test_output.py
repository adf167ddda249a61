"""Tables fit the screen and break no word, unless it is wider than the screen."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from floe.cli import output

ROWS: list[dict[str, object]] = [
    {"process": "credit.exposure_daily", "state": "SKIPPED",
     "writes": "credit.exposure 2026-09-01.1", "rows": 1234567, "seconds": None},
    {"process": "market.fx_rates_normalised", "state": "DONE", "writes": None, "rows": 3,
     "seconds": "12.5"},
]  # fmt: skip


def printed(monkeypatch: pytest.MonkeyPatch, width: int, rows: list[dict[str, object]]) -> str:
    console = Console(width=width, highlight=False)
    monkeypatch.setattr(output, "console", console)
    with console.capture() as shown:
        console.print(output.table("Processes", rows))
    return shown.get()


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_no_word_is_broken_and_no_line_is_too_long(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    text = printed(monkeypatch, width, ROWS)
    words = [word for row in ROWS for value in row.values() if isinstance(value, str)
             for word in value.split()]  # fmt: skip
    assert [word for word in (*words, *ROWS[0], "1,234,567") if word not in text] == []
    assert max(map(len, text.splitlines())) <= width


def test_a_wide_screen_gets_a_table_and_a_narrow_one_gets_lists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert printed(monkeypatch, 120, ROWS).count("process") == 1
    assert printed(monkeypatch, 60, ROWS).count("process") == len(ROWS)


def test_a_long_key_is_broken_after_its_last_slash_to_keep_the_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows: list[dict[str, object]] = [
        {"run": "11b71e2b", "process": f"floe/credit-risk/{'x' * 50}", "state": "FAILED"}
    ]
    lines = printed(monkeypatch, 80, rows).splitlines()
    assert [line.split()[1] for line in lines if "11b71e2b" in line] == ["floe/credit-risk/"]
    assert "x" * 50 in [line.strip() for line in lines]
    assert max(map(len, lines)) <= 80


def test_a_word_wider_than_the_screen_is_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed(monkeypatch, 30, [{"run": "x" * 50}])
    assert max(map(len, text.splitlines())) <= 30
    assert text.count("x") == 50


def test_a_title_is_not_wrapped_to_the_width_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(width=80, highlight=False)
    monkeypatch.setattr(output, "console", console)
    with console.capture() as shown:
        console.print(output.table("out.good 2026-09-01.1", [{"id": "1"}]))
    assert shown.get().splitlines()[0].strip() == "out.good 2026-09-01.1"


def test_a_closed_pipe_is_not_an_error(tmp_path: Path) -> None:
    # The answer is smaller than Python's buffer, so it is written when the program ends.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run(
        [sys.executable, "-m", "floe.cli", "--version"],
        stdout=write, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment, check=False,
    )  # fmt: skip
    os.close(write)
    assert ended.stderr == ""
