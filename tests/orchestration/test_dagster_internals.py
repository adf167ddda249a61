"""Dagster still has the non-public parts that floe uses, and only one module imports them.

When a test here fails after an upgrade of Dagster, see
docs/decisions/0016-non-public-parts-of-dagster-and-dbt.md.
"""

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import dagster
import pytest
from dagster._core.storage.event_log.base import EventLogStorage

import floe
from floe.orchestration import dagster_internals
from floe.orchestration.dagster_internals import (
    MEMBERS,
    PARTS,
    DagsterChangedError,
    execute_run_command_body,
)

SOURCES = Path(floe.__file__).parent
INTERNALS = SOURCES / "orchestration" / "dagster_internals.py"
DECISION = Path(__file__).parents[2] / "docs/decisions/0016-non-public-parts-of-dagster-and-dbt.md"


def owner_of(name: str) -> type:
    owners = {"EventLogStorage": EventLogStorage}
    owner: type = owners.get(name) or getattr(dagster, name, None) or PARTS[name].load()
    return owner


def has_member(owner: type, name: str) -> bool:
    """Tell whether a class has a member, or sets it on its instances."""
    sources = [inspect.getsource(base) for base in owner.__mro__ if base.__module__ != "builtins"]
    assigned = re.compile(rf"\bself\.{name}\b")
    return hasattr(owner, name) or any(assigned.search(source) for source in sources)


def private_imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        else:
            continue
        yield from (name for name in modules if re.match(r"dagster\w*\.(.*\.)?_", name))


@pytest.mark.parametrize("name", PARTS)
def test_dagster_has_the_part(name: str) -> None:
    assert PARTS[name].load() is not None


@pytest.mark.parametrize(
    ("owner", "member"), [(owner, member) for owner in MEMBERS for member in MEMBERS[owner]]
)
def test_dagster_has_the_member(owner: str, member: str) -> None:
    assert has_member(owner_of(owner), member), (
        f"Dagster {dagster.__version__} has no {owner}.{member}, which floe.orchestration uses. "
        f"See docs/decisions/{DECISION.name}."
    )


def test_a_run_is_executed_with_the_expected_arguments() -> None:
    assert list(inspect.signature(execute_run_command_body).parameters) == [
        "run_id",
        "instance",
        "write_stream_fn",
        "set_exit_code_on_failure",
    ]


def test_a_step_context_is_copied_with_all_of_its_arguments() -> None:
    parameters = inspect.signature(dagster.StepExecutionContext.__init__).parameters
    assert list(parameters) == [
        "self",
        "plan_data",
        "execution_data",
        "log_manager",
        "step",
        "output_capture",
        "known_state",
        "event_loop",
    ]


def test_a_moved_part_is_reported_with_what_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dagster._cli.api", ModuleType("dagster._cli.api"))
    with pytest.raises(DagsterChangedError) as caught:
        _ = dagster_internals.execute_run_command_body
    assert str(caught.value) == (
        f"Dagster {dagster.__version__} has no dagster._cli.api._execute_run_command_body, which "
        "floe's launcher/run_launcher.py needs to launch runs as forks of the warm process. "
        "Install the version of Dagster that floe pins, or adapt launcher/run_launcher.py: see "
        f"docs/decisions/{DECISION.name}."
    )


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'unknown'"):
        _ = dagster_internals.unknown


def test_only_one_module_imports_private_modules_of_dagster() -> None:
    others = {
        str(file.relative_to(SOURCES)): names
        for file in SOURCES.rglob("*.py")
        if file != INTERNALS and (names := list(private_imports(file)))
    }
    assert others == {}, "Import these through floe.orchestration.dagster_internals."


def test_every_part_is_used_by_the_file_it_names() -> None:
    for name, part in PARTS.items():
        source = (INTERNALS.parent / part.used_by).read_text(encoding="utf-8")
        assert re.search(rf"\b{name}\b", source), f"{part.used_by} does not use {name}"


def test_the_decision_names_every_part_and_member() -> None:
    text = DECISION.read_text(encoding="utf-8")
    names = [*PARTS, *(member for members in MEMBERS.values() for member in members)]
    assert [name for name in names if f"`{name}`" not in text] == []
