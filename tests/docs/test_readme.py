"""README.md: its table of commands is complete; its commands and make targets exist."""

import re
from pathlib import Path

from typer.main import get_command

from floe.cli import app

README = Path(__file__).parents[2].joinpath("README.md").read_text()


def test_the_table_lists_every_command_once() -> None:
    listed = re.findall(r"^\| `floe ([a-z-]+)", README, re.M)
    assert sorted(listed) == sorted(get_command(app).commands)  # type: ignore[attr-defined]


def test_commands_in_the_code_blocks_exist() -> None:
    blocks = "".join(re.findall(r"```\n(.*?)```", README, re.S))
    typed = set(re.findall(r"(?:^|&& |\$ )floe ([a-z-]+)", blocks, re.M))
    assert typed
    assert typed <= set(get_command(app).commands)  # type: ignore[attr-defined]


def test_make_targets_exist() -> None:
    makefile = Path(__file__).parents[2].joinpath("Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.M))
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.M)) <= targets
