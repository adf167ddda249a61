"""`floe register-dataset NAME`: an old job says that its data are there, in one call."""

from typing import TYPE_CHECKING, Annotated

import typer

from floe.cli.options import JsonOption
from floe.cli.output import console, err, print_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from floe.client import Client, Delivery

DateOption = Annotated[str | None, typer.Option("--date", help="Business date, as 2026-09-01.")]
RequireOption = Annotated[
    bool, typer.Option("--require-delivery", help="Exit 75 unless floe has it now.")
]
# What sysexits.h calls them: try again later, and an error of input or output.
TRY_LATER, NOT_KEPT = 75, 74


def register_dataset(
    name: Annotated[str, typer.Argument(help="schema.table of the lake, or namespace/name.")],
    *,
    version: Annotated[str | None, typer.Option(help="The producer's own version.")] = None,
    status: Annotated[str, typer.Option(help="READY or FAILED.")] = "READY",
    date: DateOption = None,
    rows: Annotated[int | None, typer.Option(help="How many rows were written.")] = None,
    size: Annotated[int | None, typer.Option(help="How many bytes were written.")] = None,
    path: Annotated[str | None, typer.Option(help="Where the data are.")] = None,
    namespace: Annotated[str | None, typer.Option(help="Where the name is from.")] = None,
    job: Annotated[str | None, typer.Option(help="Who wrote it, as AUTOSYS/BOX/JOB.")] = None,
    run_id: Annotated[str | None, typer.Option(help="Which run wrote it. READY ends it.")] = None,
    error: Annotated[str | None, typer.Option(help="Why it FAILED.")] = None,
    require_delivery: RequireOption = False,
    as_json: JsonOption = False,
) -> None:
    """Say that a version of a dataset is READY or FAILED. It is kept on disk if floe is down."""
    report(
        name,
        lambda client: client.register_dataset(
            name,
            version,
            status,
            business_date=date,
            rows=rows,
            size=size,
            path=path,
            namespace=namespace,
            job=job,
            run_id=run_id,
            error=error,
        ),
        require_delivery=require_delivery,
        as_json=as_json,
    )


def report(
    what: str,
    call: "Callable[[Client], Delivery]",
    *,
    require_delivery: bool,
    as_json: bool,
) -> None:
    """Make a report, say what became of it, and exit by that."""
    from floe.client import Client, State, describe

    delivery = call(Client(insist=require_delivery, warn=lambda _: None))
    state, words = delivery.state, describe(delivery)
    if as_json:
        said = {"state": state.value, "run_id": delivery.run_id, "reason": delivery.reason}
        print_json(said)
    else:
        good = state in (State.DELIVERED, State.SPOOLED)
        # A server's reason is often a sentence of its own.
        line = f"{what}: {words.rstrip('.')}."
        (console if good else err).print(line, markup=False, soft_wrap=True)
    codes = {
        State.DELIVERED: 0,
        State.SPOOLED: TRY_LATER if require_delivery else 0,
        State.REFUSED: 1,
        State.LOST: NOT_KEPT,
    }
    raise typer.Exit(codes[state])
