"""`floe register-process KEY STATUS`: an old job says how its run is getting on."""

from typing import Annotated

import typer

from floe.cli.options import JsonOption
from floe.cli.register_dataset import DateOption, RequireOption, report

VERSIONED = "schema.table or namespace/name, with @version if there is one; may be repeated."


def register_process(
    key: Annotated[str, typer.Argument(help="The process, such as AUTOSYS/BOX/JOB.")],
    status: Annotated[str, typer.Argument(help="STARTED, RUNNING, SUCCESS, FAILED or CANCELLED.")],
    *,
    run_id: Annotated[
        str | None, typer.Option(help="The run (default: the one that is open on this host).")
    ] = None,
    date: DateOption = None,
    inputs: Annotated[
        list[str] | None, typer.Option("--input", help=f"A dataset it reads: {VERSIONED}")
    ] = None,
    outputs: Annotated[
        list[str] | None, typer.Option("--output", help=f"A dataset it writes: {VERSIONED}")
    ] = None,
    error: Annotated[str | None, typer.Option(help="Why it FAILED.")] = None,
    technology: Annotated[str | None, typer.Option(help="What runs it, as SHELL.")] = None,
    require_delivery: RequireOption = False,
    as_json: JsonOption = False,
) -> None:
    """Say that a process STARTED, is RUNNING or ended. It is kept on disk if floe is down."""
    report(
        key,
        lambda client: client.register_process(
            key,
            status,
            run_id=run_id,
            business_date=date,
            inputs=inputs or (),
            outputs=outputs or (),
            error=error,
            technology=technology,
        ),
        require_delivery=require_delivery,
        as_json=as_json,
    )
