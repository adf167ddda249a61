"""floe validate: list everything that is wrong with a project, or say that it is right."""

from typing import TYPE_CHECKING

import typer

from floe.cli.options import JsonOption, ProjectOption
from floe.cli.output import console, print_json

if TYPE_CHECKING:
    from collections.abc import Sized

    from floe.spec import Validation


def validate(project: ProjectOption = None, as_json: JsonOption = False) -> None:
    """Check floe.yaml and the platform files; exit 1 when something is wrong."""
    from floe.settings import find_project
    from floe.spec import validate_project

    paths = find_project(project)
    validation = validate_project(paths)
    if validation.spec.processes:
        from floe.execution.declared_sql import with_sql_findings

        validation = with_sql_findings(paths, validation)
    found = validation.findings
    ok = not found
    if as_json:
        findings = [finding.as_json() for finding in found]
        print_json({"ok": ok, "findings": findings})
    elif ok:
        console.print(_summary(validation), markup=False, soft_wrap=True)
    else:
        for finding in found:
            console.print(str(finding), markup=False, soft_wrap=True)
        console.print(f"{_count(len(found), 'finding')}.", markup=False)
    if not ok:
        raise typer.Exit(1)


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


def _count(number: int, noun: str) -> str:
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"
