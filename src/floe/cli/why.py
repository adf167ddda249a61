"""`floe why PROCESS`: what a process waits for, and whose that is."""

from datetime import datetime
from typing import Annotated

import typer

from floe.cli.options import JsonOption, ProjectOption
from floe.cli.output import console, print_json
from floe.settings import find_project


def why(
    process: Annotated[str, typer.Argument(help="The process, as floe.yaml names it.")],
    date: Annotated[
        datetime | None,
        typer.Option("--date", "-d", formats=["%Y-%m-%d"], help="Its date (default: today's)."),
    ] = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say in one sentence where a process stands for a date: what it waits for, whose that is."""
    from floe.execution.readiness import explain_process
    from floe.execution.workspace import load_site, open_workspace

    with open_workspace(load_site(find_project(project))) as workspace:
        reason = explain_process(workspace, process, date.date() if date else None)
    if as_json:
        print_json(
            {
                "process": reason.process,
                "business_date": reason.business_date.isoformat(),
                "state": reason.state,
                "sentence": reason.sentence,
                "waits_for": [
                    {
                        "dataset": one.dataset,
                        "business_date": one.business_date and one.business_date.isoformat(),
                        "whose": one.whose,
                        "because": one.because,
                    }
                    for one in reason.waits_for
                ],
            }
        )
    else:
        console.print(reason.sentence, markup=False, highlight=False)
