"""The demo project is valid, and its SQL returns the declared columns."""

import sqlite3
from pathlib import Path

import pytest

from floe.settings import ProjectPaths
from floe.spec import ProcessSpec, load_platform, load_project, read_sql, validate_project

DEMO = ProjectPaths(Path(__file__).parents[2] / "demo" / "credit_risk")
SPEC = load_project(DEMO, {}).spec
SQL_PROCESSES = [name for name, process in SPEC.processes.items() if process.runs_on == "spark_sql"]


def test_demo_is_valid_and_has_every_kind_of_process() -> None:
    assert not validate_project(DEMO, {}).findings
    engines = sorted(process.runs_on for process in SPEC.processes.values())
    assert engines == ["command", "python", *["spark_sql"] * 5]
    assert "risk_db" in load_platform(DEMO, {}).connections


def run_on_empty_tables(process: ProcessSpec) -> list[str]:
    """Run a process's SQL on empty tables; return the columns of the result."""
    database = sqlite3.connect(":memory:")
    database.create_function("greatest", 2, max)
    for alias, input_ in process.inputs.items():
        columns = ", ".join(f'"{name}"' for name in SPEC.datasets[input_.dataset].column_names)
        database.execute(f'create table "{alias}" ({columns})')
    steps = [(step.name, step.sql) for step in process.steps] or [("result", process.sql)]
    cursor = database.cursor()
    for name, sql in steps:
        assert sql is not None
        text = read_sql(DEMO.root, sql)
        cursor = database.execute(text, process.params)
        columns = ", ".join(f'"{column[0]}"' for column in cursor.description)
        database.execute(f'create table "{name}" ({columns})')
    return [column[0] for column in cursor.description]


@pytest.mark.parametrize("name", SQL_PROCESSES)
def test_sql_reads_and_returns_declared_columns(name: str) -> None:
    process = SPEC.processes[name]
    (output,) = process.outputs.values()
    assert tuple(run_on_empty_tables(process)) == SPEC.datasets[output.dataset].column_names
