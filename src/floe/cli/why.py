"""`floe why PROCESS`: what a process is waiting for, and who has to act."""

from dataclasses import asdict
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe.cli.context import JsonOption, ProjectOption, date_option
from floe.cli.output import console, print_json
from floe.settings import find_project

if TYPE_CHECKING:
    from floe.execution.process_status import Explanation
    from floe.triggers.explanations import InputFacts


def why(
    process: Annotated[str, typer.Argument(help="Process of floe.yaml.")],
    day: Annotated[date | None, date_option("Business date (default: today).")] = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Explain in one sentence what a process is waiting for, and who has to act."""
    from floe.execution.process_status import explain_process
    from floe.execution.workspace import load_site, open_workspace

    with open_workspace(load_site(find_project(project))) as workspace:
        reason = explain_process(workspace, process, day)
    if as_json:
        print_json(describe_reason(reason))
    else:
        console.print(reason.sentence, markup=False, highlight=False, soft_wrap=True)


def describe_reason(reason: "Explanation") -> dict[str, Any]:
    """Return the answer as JSON: state, sentence and facts."""
    facts = reason.facts
    waiting = {id(missing) for missing in facts.unavailable()}
    return {
        "process": facts.process,
        "business_date": facts.business_date,
        "state": reason.state,
        "sentence": reason.sentence,
        "waits_for": [_input(source) for source in facts.inputs if id(source) in waiting],
        "inputs": [_input(source) for source in facts.inputs],
        "outputs": [_nulls_for_unknown(asdict(output)) for output in facts.outputs],
        "run": _nulls_for_unknown(asdict(facts.run)) if facts.run.run_id else None,
    }


def _input(facts: "InputFacts") -> dict[str, Any]:
    # The JSON key is older than the name of the field.
    fields = {"whose" if name == "origin" else name: value for name, value in asdict(facts).items()}
    return _nulls_for_unknown(fields)


def _nulls_for_unknown(facts: dict[str, Any]) -> dict[str, Any]:
    """Replace empty strings, which mean unknown, with null."""
    return {name: None if value == "" else value for name, value in facts.items()}
