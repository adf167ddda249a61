"""docs/tutorial.md: every file is saved, every command runs and prints the page's output."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(600)]

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"(?P<before>[^\n]*)\n+```(?P<language>\w+)\n(?P<text>.*?)```", re.DOTALL)
FILE_NAME = re.compile(r"[Ss]ave (?:it|this) as `([^`]+)`")
EXIT_CODE = re.compile(r"\[exit code (\d+)\]")


@dataclass
class Command:
    """A command of the page, with the lines that it must print."""

    line: str
    expected: list[str] = field(default_factory=list)
    exit_code: int = 0


@dataclass
class File:
    """A file that the page tells the reader to save."""

    name: str
    text: str


def steps(page: str) -> Iterator[Command | File]:
    """Return what a reader of the page does, in order."""
    for block in BLOCK.finditer(page):
        if block["language"] == "console":
            yield from _commands(block["text"])
        else:
            name = FILE_NAME.search(block["before"])
            assert name, f"no file name before the block that starts {block['text'][:40]!r}"
            yield File(name[1], block["text"])


def _commands(text: str) -> list[Command]:
    commands: list[Command] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            commands.append(Command(line[2:]))
        elif code := EXIT_CODE.fullmatch(line):
            commands[-1].exit_code = int(code[1])
        else:
            commands[-1].expected.append(line)
    return commands


def normalize(text: str) -> str:
    return " ".join(text.split())


def is_printed(expected: str, output: str) -> bool:
    """Tell whether a line is in the output; `…` stands for anything."""
    parts = map(re.escape, normalize(expected).split("…"))
    return re.search(".*".join(parts), normalize(output)) is not None


def test_the_commands_of_the_tutorial_print_what_the_page_shows(tmp_path: Path) -> None:
    folder = tmp_path
    environ = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    try:
        for step in steps(PAGE.read_text()):
            if isinstance(step, File):
                path = folder / step.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(step.text)
            elif step.line.startswith("cd "):
                folder = folder / step.line.removeprefix("cd ")
            else:
                _run(step, folder, environ)
    finally:
        subprocess.run(_floe("spark stop"), cwd=folder, check=False, capture_output=True)


def _floe(arguments: str) -> list[str]:
    return [sys.executable, "-m", "floe.cli", *arguments.split()]


def _run(command: Command, folder: Path, environ: dict[str, str]) -> None:
    name, _, arguments = command.line.partition(" ")
    assert name == "floe", command.line
    done = subprocess.run(
        _floe(arguments), cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    output = done.stdout + done.stderr
    assert done.returncode == command.exit_code, f"{command.line}\n{output}"
    missing = [line for line in command.expected if not is_printed(line, output)]
    assert missing == [], f"{command.line} printed:\n{output}"
