"""docs/reference/running.md names every command, option, engine, mode, check and state."""

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
import typer

from floe.catalog.versions import NEXT_STATES
from floe.cli import app
from floe.execution import batch, failures, leases
from floe.execution.column_lineage import Use
from floe.execution.engines import command
from floe.execution.formats.registry import BUILT_IN_FORMATS, format_named
from floe.execution.maintenance.sweep import Kind
from floe.execution.spark.server import ServerStatus
from floe.execution.versions.schema_fit import WIDENINGS
from floe.orchestration.launcher.warm_process import GRACE_SECONDS
from floe.services.dagster_services import CODE, DAEMON, HOME, WEB, WORKERS
from floe.services.state import State
from floe.services.supervisor import ATTEMPTS
from floe.spec.checks import AnyCheck
from floe.spec.processes import Engine, Mapping, WriteMode

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "running.md").read_text()
LOOK, UPKEEP = (
    ("runs", "show", "why", "versions", "read", "diff"),
    ("retract", "vacuum", "compact", "analyze"),
)
SERVICES = ("up", "status", "down")
NAMES = (*SERVICES, "run", "backfill", "check", *LOOK, *UPKEEP, "spark")


def commands() -> dict[str, Any]:
    """Return the commands of the page; those of a group one by one."""
    listed: dict[str, Any] = {}
    every: Any = typer.main.get_command(app)
    for name in NAMES:
        inner = getattr(every.commands[name], "commands", None)
        group = {f"{name} {sub}": command for sub, command in (inner or {}).items()}
        listed |= group or {name: every.commands[name]}
    return listed


COMMANDS = commands()


def section(title: str) -> str:
    """Return the text under a heading, up to the next one of the same or a higher level."""
    level = title.partition(" ")[0]
    match = re.search(rf"^{re.escape(title)}\n(.*?)(?=^#{{1,{len(level)}}} |\Z)", PAGE, re.M | re.S)
    assert match is not None, f"the page has no {title}"
    return match[1]


def words(text: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", text))


def rows(title: str) -> dict[str, list[str]]:
    """Return the tables under a heading: the first cell of each row, with the others."""
    lines = [line.strip("| ").split(" | ") for line in section(title).splitlines()]
    return {cells[0].strip("`"): cells[1:] for cells in lines if len(cells) > 1}


def options(target: Any) -> set[str]:
    names = {name for param in target.params for name in param.opts if name.startswith("-")}
    return names - {"--help", "-h"}


def usage(name: str, target: Any) -> str:
    """Return a command as the table shows it, with its arguments."""
    declared = [param for param in target.params if param.param_type_name == "argument"]
    called = [(param, (param.metavar or str(param.name).upper())) for param in declared]
    arguments = [word if param.required else f"[{word.strip('[]')}]" for param, word in called]
    return " ".join(["floe", name, *arguments])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_listed_with_all_its_options(name: str) -> None:
    (described,) = rows("## Commands")[usage(name, COMMANDS[name])]
    assert words(described) == options(COMMANDS[name])


def test_every_option_of_a_run_is_explained() -> None:
    explained = {
        word for first in rows("### `floe run`") for word in re.findall(r"--?[\w-]+", first)
    }
    assert explained == options(COMMANDS["run"]) - {"--project", "-p", "--json"}


def test_every_option_service_and_state_of_floe_up_is_explained() -> None:
    explained = rows("## Bringing it up")
    assert options(COMMANDS["up"]) - {"--project", "-p"} <= explained.keys()
    assert {"spark", "api", HOME, CODE, WORKERS, WEB, DAEMON} <= explained.keys()
    named = {word for first in explained for word in re.findall(r"[a-z][a-z ]+", first)}
    assert set(get_args(State)) <= named
    assert f"given up after {ATTEMPTS} restarts" in section("## Bringing it up")
    assert f"{GRACE_SECONDS:.0f} seconds later it" in section("### How runs start")


def test_every_option_of_a_backfill_is_explained() -> None:
    explained = {
        word for first in rows("### `floe backfill`") for word in re.findall(r"--?[\w-]+", first)
    }
    assert explained == options(COMMANDS["backfill"]) - {"--project", "-p", "--json"}


def test_every_outcome_of_a_batch_is_explained() -> None:
    outcomes = {batch.DONE, batch.FAILED, batch.SKIPPED, batch.WAITING}
    assert outcomes <= rows("### `floe run`").keys()


def test_every_state_is_explained_with_what_may_follow() -> None:
    table = {name: cells for name, cells in rows("## Versions").items() if name != "state"}
    described = {name: set(re.findall(r"[A-Z]+", cells[1])) for name, cells in table.items()}
    assert described == {state: set(after) for state, after in NEXT_STATES.items()}


def test_every_check_kind_is_explained() -> None:
    union = get_args(AnyCheck)[0]
    kinds = {get_args(arm)[1].tag for arm in get_args(union)}
    assert rows("## Checks").keys() - {"kind"} == kinds


def test_every_write_mode_is_explained_and_listed_for_each_format() -> None:
    table = rows("## Write modes")
    assert set(get_args(WriteMode)) <= table.keys()
    for entry in BUILT_IN_FORMATS:
        assert words(table[entry.name][0]) == set(format_named(entry.name).modes)


def test_every_mapping_is_explained() -> None:
    assert rows("## Inputs").keys() - {"mapping"} == set(get_args(Mapping))


def test_every_engine_is_explained() -> None:
    assert set(get_args(Engine)) <= rows("## Engines").keys()
    assert all(f"**`{engine}`.**" in section("## Engines") for engine in get_args(Engine))


def test_every_variable_of_a_command_is_explained() -> None:
    run, report = (json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.S))
    given = {command.RUN_FILE, command.REPORT_FILE, *command._flat(run)}
    explained = words(section("## Engines"))
    patterns = [
        re.sub(r"<\w+>", r"[A-Z_]+", word) for word in explained if word.startswith("FLOE_")
    ]
    assert [
        name for name in given if not any(re.fullmatch(pattern, name) for pattern in patterns)
    ] == []
    assert list(report) == ["outputs"]


def test_every_kind_that_vacuum_removes_and_every_state_of_spark_is_named() -> None:
    assert set(get_args(Kind)) <= words(
        section("### `floe vacuum`, `floe compact`, `floe analyze`")
    )
    states = get_args(ServerStatus.__annotations__["state"])
    assert [state for state in states if state not in section("### `floe spark`")] == []


def test_every_use_of_a_column_is_named() -> None:
    named = set(re.findall(r"[A-Z_]{4,}", section("## Column lineage")))
    assert named >= {use.value for use in Use}


def test_every_widening_is_named() -> None:
    text = section("## The schema is a contract")
    for narrow, wider in WIDENINGS.items():
        assert re.search(
            rf"`{narrow}` to\s[^;]*{'[^;]*'.join(f'`{wide}`' for wide in wider)}", text
        )


def test_times_match_the_code() -> None:
    text = section("## Retry, timeout, concurrency")
    assert f"last {leases.LEASE_DURATION.seconds} seconds" in text
    assert f"every {leases.RENEW_SECONDS:.0f}" in text
    assert f"{command.GRACE_SECONDS} seconds later SIGKILL" in text
    assert f"waits {failures.PATIENCE.seconds // 60} minutes" in text
