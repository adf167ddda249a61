"""`floe validate`: print all mistakes in a project, or a summary if it is valid."""

from typing import TYPE_CHECKING

import typer

from floe.cli.context import JsonOption, ProjectOption
from floe.cli.output import console, err, print_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sized

    from floe.spec import Finding, Validation


def validate(project: ProjectOption = None, as_json: JsonOption = False) -> None:
    """Check floe.yaml and the platform files; exit 1 if they have mistakes."""
    from floe.settings import find_project
    from floe.spec import validate_project

    paths = find_project(project)
    validation = validate_project(paths)
    if validation.spec.processes:
        from floe.execution.declared_sql import with_sql_findings

        validation = with_sql_findings(paths, validation)
    findings = validation.findings
    ok = not findings
    if as_json:
        lists = {"findings": findings, "warnings": validation.warnings}
        print_json({"ok": ok} | {name: [f.as_json() for f in each] for name, each in lists.items()})
    else:
        _print(validation)
    if not ok:
        raise typer.Exit(1)


def _print(validation: "Validation") -> None:
    print_warnings(validation.warnings)
    findings = validation.findings
    for finding in findings:
        console.print(str(finding), markup=False, soft_wrap=True)
    summary = f"{_count(len(findings), 'finding')}." if findings else _summary(validation)
    console.print(summary, markup=False, soft_wrap=True)


def _summary(validation: "Validation") -> str:
    spec = validation.spec
    counts: dict[str, Sized] = {
        "dataset": spec.datasets,
        "process": spec.processes,
        "job": spec.orchestration.jobs,
        "schedule": spec.orchestration.schedules,
        "sensor": spec.orchestration.sensors,
        "backfill": spec.orchestration.backfills,
    }
    parts = [_count(len(things), noun) for noun, things in counts.items() if things]
    return f"{spec.name} is valid: {', '.join(parts) or 'nothing declared yet'}."


def print_warnings(warnings: "Iterable[Finding]") -> None:
    """Print uses of keys that floe does not enforce yet."""
    for warning in warnings:
        err.print(f"Warning: {warning}", markup=False, soft_wrap=True)


def _count(count: int, noun: str) -> str:
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{count} {noun if count == 1 else plural}"
