"""`floe why PROCESS`: where a process stands for a date, and who has to act."""

from dataclasses import asdict
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe.cli.options import JsonOption, ProjectOption, date_option
from floe.cli.output import console, print_json
from floe.settings import find_project

if TYPE_CHECKING:
    from floe.execution.readiness import Reason
    from floe.triggers.explaining import InputFacts


def why(
    process: Annotated[str, typer.Argument(help="The process, as floe.yaml names it.")],
    day: Annotated[date | None, date_option("Business date (default: today).")] = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say in one sentence where a process stands for a date, and who has to act."""
    from floe.execution.readiness import explain_process
    from floe.execution.workspace import load_site, open_workspace

    with open_workspace(load_site(find_project(project))) as workspace:
        reason = explain_process(workspace, process, day)
    if as_json:
        print_json(describe_reason(reason))
    else:
        console.print(reason.sentence, markup=False, highlight=False, soft_wrap=True)


def describe_reason(reason: "Reason") -> dict[str, Any]:
    """The answer as JSON: the state, the sentence, and the facts behind them."""
    facts = reason.facts
    waiting = {id(one) for one in facts.lacking()}
    return {
        "process": facts.process,
        "business_date": facts.business_date,
        "state": reason.state,
        "sentence": reason.sentence,
        "waits_for": [_input(one) for one in facts.inputs if id(one) in waiting],
        "inputs": [_input(one) for one in facts.inputs],
        "outputs": [_said(asdict(one)) for one in facts.outputs],
        "run": _said(asdict(facts.run)) if facts.run.run_id else None,
    }


def _input(facts: "InputFacts") -> dict[str, Any]:
    return _said(asdict(facts))


def _said(facts: dict[str, Any]) -> dict[str, Any]:
    """Write what is unknown as null."""
    return {name: None if value == "" else value for name, value in facts.items()}
