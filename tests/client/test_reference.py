"""The client's reference page is complete, and the examples of docs/legacy.md work."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import floe.client
from floe.cli.events import app as events
from floe.cli.register import register_dataset, register_process
from tests.client.fake_api import FakeApi

ROOT = Path(__file__).parents[2]
REFERENCE = (ROOT / "docs" / "reference" / "client.md").read_text()
LEGACY = (ROOT / "docs" / "legacy.md").read_text()
JOB = "AUTOSYS/EOD_CREDIT/LOAD_POSITIONS"


def section(title: str) -> str:
    return REFERENCE.split(f"## {title}\n")[1].split("\n## ")[0]


app = typer.Typer()
app.command()(register_dataset)
app.command()(register_process)
app.add_typer(events, name="events")


@pytest.mark.parametrize("name", floe.client.__all__)
def test_every_public_name_is_described(name: str) -> None:
    assert re.search(rf"`{name}\b", section("Functions and classes"))


@pytest.mark.parametrize(
    ("call", "title"),
    [
        (floe.client.dataset_message, "Details of a dataset"),
        (floe.client.process_message, "Details of a process"),
    ],
)
def test_every_detail_is_described(call: object, title: str) -> None:
    assert callable(call)
    described = set(re.findall(r"`(\w+)`", section(title)))
    assert set(inspect.signature(call).parameters) <= described


def test_every_variable_is_described() -> None:
    source = "".join(path.read_text() for path in (ROOT / "src/floe/client").glob("*.py"))
    used = set(re.findall(r'"(FLOE_[A-Z_]+)"', source))
    described = set(re.findall(r"^\| `(FLOE_\w+)`", section("Variables"), re.MULTILINE))
    assert used == described


@pytest.mark.parametrize(
    "command",
    ["register-dataset", "register-process", "events import", "events export"],
)
def test_every_option_is_described(command: str) -> None:
    shown = CliRunner(env={"COLUMNS": "200"}).invoke(app, [*command.split(), "--help"]).stdout
    options = set(re.findall(r"(?<![\w-])--[a-z-]+", shown)) - {"--help"}
    lines = section("Commands").splitlines()
    (described,) = (line for line in lines if line.startswith(f"| `floe {command}"))
    assert options == set(re.findall(r"--[a-z-]+", described))


def examples(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", LEGACY, re.DOTALL)


def test_the_python_examples_run(api: FakeApi) -> None:
    for example in examples("python"):
        exec(compile(example, "docs/legacy.md", "exec"), {"load_positions": lambda: 10})
    assert [event["eventType"] for event in api.taken] == [
        "START",
        "COMPLETE",
        "START",
        "COMPLETE",
        "COMPLETE",
    ]


@pytest.mark.parametrize("example", examples("sh"))
def test_the_shell_examples_are_valid_shell(example: str) -> None:
    subprocess.run(["sh", "-n"], input=example, text=True, check=True)


@pytest.mark.parametrize(
    ("command", "code", "kind"), [("true", 0, "COMPLETE"), ("exit 3", 3, "FAIL")]
)
def test_the_shell_wrapper_reports_and_keeps_the_exit_code(
    api: FakeApi, host: Path, command: str, code: int, kind: str
) -> None:
    done = run_wrapper(host, command)
    assert (done.returncode, done.stdout) == (code, "")
    start, end = api.taken
    assert (start["eventType"], end["eventType"]) == ("START", kind)
    assert start["run"]["runId"] == end["run"]["runId"]
    assert start["job"]["name"] == "EOD_CREDIT/LOAD_POSITIONS"


def run_wrapper(host: Path, command: str) -> "subprocess.CompletedProcess[str]":
    """Run the wrapper of docs/legacy.md, with a `floe` that has only the two calls."""
    (wrapper,) = (example for example in examples("sh") if example.startswith("#!/bin/sh"))
    (host / "floe-run").write_text(wrapper)
    code = (
        "import typer; from floe.cli import register; app = typer.Typer(); "
        "app.command()(register.register_dataset); app.command()(register.register_process); app()"
    )
    floe_command = host / "floe"
    floe_command.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{code}' \"$@\"\n")
    floe_command.chmod(0o755)
    environ = {**os.environ, "PATH": f"{host}:{os.environ['PATH']}"}
    line = ["sh", "floe-run", JOB, "sh", "-c", command]
    return subprocess.run(line, env=environ, capture_output=True, text=True, check=False)
