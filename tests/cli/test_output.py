"""Tables fit the screen, and no word of them is broken unless it is wider than the screen."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from floe.cli import output

ROWS: list[dict[str, object]] = [
    {"process": "credit.exposure_daily", "state": "SKIPPED",
     "makes": "credit.exposure 2026-09-01.1", "rows": 1234567, "seconds": None},
    {"process": "market.fx_rates_normalised", "state": "DONE", "makes": None, "rows": 3,
     "seconds": "12.5"},
]  # fmt: skip


def printed(monkeypatch: pytest.MonkeyPatch, width: int, rows: list[dict[str, object]]) -> str:
    console = Console(width=width, highlight=False)
    monkeypatch.setattr(output, "console", console)
    with console.capture() as shown:
        console.print(output.table("Processes", rows))
    return shown.get()


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_no_word_is_broken_and_no_line_leaves_the_screen(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    text = printed(monkeypatch, width, ROWS)
    words = [word for row in ROWS for value in row.values() if isinstance(value, str)
             for word in value.split()]  # fmt: skip
    assert [word for word in (*words, *ROWS[0], "1,234,567") if word not in text] == []
    assert max(map(len, text.splitlines())) <= width


def test_a_wide_screen_gets_a_table_and_a_narrow_one_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    assert printed(monkeypatch, 120, ROWS).count("process") == 1
    assert printed(monkeypatch, 60, ROWS).count("process") == len(ROWS)


def test_a_word_that_is_wider_than_the_screen_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed(monkeypatch, 30, [{"run": "x" * 50}])
    assert max(map(len, text.splitlines())) <= 30
    assert text.count("x") == 50


def test_a_title_is_not_squeezed_into_a_narrow_table(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(width=80, highlight=False)
    monkeypatch.setattr(output, "console", console)
    with console.capture() as shown:
        console.print(output.table("out.good 2026-09-01.1", [{"id": "1"}]))
    assert shown.get().splitlines()[0].strip() == "out.good 2026-09-01.1"


def test_a_reader_that_is_gone_is_no_error(tmp_path: Path) -> None:
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
