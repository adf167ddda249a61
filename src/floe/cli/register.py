"""`floe register`, and the two calls of legacy jobs.

`floe register` updates the catalog from floe.yaml. Legacy jobs call `floe register-dataset` and
`floe register-process`; these import neither the catalog nor the spec, so they start fast.
"""

import os
from getpass import getuser
from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe.cli.context import JsonOption, ProjectOption, open_project_catalog
from floe.cli.output import console, err, print_json
from floe.settings import find_project

if TYPE_CHECKING:
    from collections.abc import Callable

    from floe.client import Client, Delivery

# Exit codes of sysexits.h: try again later, and an input/output error.
TRY_LATER, NOT_SAVED = 75, 74
NOT_READY = ("WRITING", "WRITTEN", "PUBLISHING")
VERSIONED = "schema.table or namespace/name, with @version if known; may be repeated."
DateOption = Annotated[str | None, typer.Option("--date", help="Business date, as 2026-09-01.")]
RequireOption = Annotated[
    bool, typer.Option("--require-delivery", help="Exit 75 if floe cannot be reached now.")
]


def register(project: ProjectOption = None, as_json: JsonOption = False) -> None:
    """Update the catalog from floe.yaml; print what changed."""
    from floe.catalog import register_project
    from floe.execution.declared_sql import load_with_sql
    from floe.spec import load_platform
    from floe.spec.sql import sql_of_processes

    paths = find_project(project)
    loaded = load_with_sql(paths, os.environ)
    lake = load_platform(paths, os.environ).lake.name
    with open_project_catalog(project) as catalog, catalog.writing() as session:
        report = register_project(
            session,
            loaded.spec,
            lake=lake,
            actor=getuser(),
            sql=sql_of_processes(paths.root, loaded.spec.processes),
        )
    if as_json:
        print_json({"project": loaded.spec.name, "changes": [vars(line) for line in report.lines]})
        return
    for line in report.lines:
        console.print(str(line), markup=False, soft_wrap=True)
    count = len(report.lines)
    changes = f"{count} change{'' if count == 1 else 's'}" if count else "nothing to change"
    console.print(f"Registered {loaded.spec.name}: {changes}.", markup=False, style="bold")


def register_dataset(
    name: Annotated[str, typer.Argument(help="schema.table of the lake, or namespace/name.")],
    *,
    version: Annotated[str | None, typer.Option(help="Version, as the producer names it.")] = None,
    status: Annotated[str, typer.Option(help="READY or FAILED.")] = "READY",
    date: DateOption = None,
    rows: Annotated[int | None, typer.Option(help="Number of rows written.")] = None,
    size: Annotated[int | None, typer.Option(help="Number of bytes written.")] = None,
    path: Annotated[str | None, typer.Option(help="Location of the data.")] = None,
    checksum: Annotated[str | None, typer.Option(help="Checksum, as sha256:9f86d0….")] = None,
    namespace: Annotated[str | None, typer.Option(help="Namespace of the name.")] = None,
    job: Annotated[
        str | None, typer.Option(help="Job that wrote it, such as AUTOSYS/BOX/JOB.")
    ] = None,
    run_id: Annotated[
        str | None, typer.Option(help="Run id. READY marks that run complete.")
    ] = None,
    error: Annotated[str | None, typer.Option(help="Why it FAILED.")] = None,
    require_delivery: RequireOption = False,
    as_json: JsonOption = False,
) -> None:
    """Report a READY or FAILED version. Queued on disk while floe is down."""
    client = _client(require_delivery=require_delivery)
    delivery = client.register_dataset(
        name,
        version,
        status,
        business_date=date,
        rows=rows,
        size=size,
        path=path,
        checksum=checksum,
        namespace=namespace,
        job=job,
        run_id=run_id,
        error=error,
    )

    def describe() -> str:
        dataset = client.find_dataset(name, namespace)
        return (
            f"{name} received" if dataset is None else _describe_version(client, dataset, delivery)
        )

    _finish(name, delivery, describe, require_delivery=require_delivery, as_json=as_json)


def register_process(
    key: Annotated[str, typer.Argument(help="Process, such as AUTOSYS/BOX/JOB.")],
    status: Annotated[str, typer.Argument(help="STARTED, RUNNING, SUCCESS, FAILED or CANCELLED.")],
    *,
    run_id: Annotated[
        str | None, typer.Option(help="Run id (default: this host's open run of the process).")
    ] = None,
    date: DateOption = None,
    inputs: Annotated[
        list[str] | None, typer.Option("--input", help=f"Dataset it reads: {VERSIONED}")
    ] = None,
    outputs: Annotated[
        list[str] | None, typer.Option("--output", help=f"Dataset it writes: {VERSIONED}")
    ] = None,
    error: Annotated[str | None, typer.Option(help="Why it FAILED.")] = None,
    technology: Annotated[str | None, typer.Option(help="What runs it, such as SHELL.")] = None,
    require_delivery: RequireOption = False,
    as_json: JsonOption = False,
) -> None:
    """Report the state of a process run. Queued on disk while floe is down."""
    delivery = _client(require_delivery=require_delivery).register_process(
        key,
        status,
        run_id=run_id,
        business_date=date,
        inputs=inputs or (),
        outputs=outputs or (),
        error=error,
        technology=technology,
    )
    _finish(
        key,
        delivery,
        lambda: f"{key} {status.upper()} received, run {delivery.run_id}",
        require_delivery=require_delivery,
        as_json=as_json,
    )


def _client(*, require_delivery: bool) -> "Client":
    from floe.client import Client

    return Client(insist=require_delivery, warn=lambda _: None)


def _finish(
    name: str,
    delivery: "Delivery",
    describe_received: "Callable[[], str]",
    *,
    require_delivery: bool,
    as_json: bool,
) -> None:
    """Print whether the report was received, and exit with the matching code."""
    from floe.client import State, describe

    state = delivery.state
    if as_json:
        facts = {"state": state.value, "run_id": delivery.run_id, "reason": delivery.reason}
        print_json(facts)
    elif state is State.DELIVERED and not delivery.reason:
        console.print(f"{describe_received()}.", markup=False, soft_wrap=True)
    else:
        # A server's reason may already end with a full stop.
        line = f"{name} {describe(delivery).rstrip('.')}."
        if state is State.SPOOLED:
            line += " It is sent with this host's next report, or now by: floe events deliver"
        good = state in (State.DELIVERED, State.SPOOLED)
        (console if good else err).print(line, markup=False, soft_wrap=True)
    codes = {
        State.DELIVERED: 0,
        State.SPOOLED: TRY_LATER if require_delivery else 0,
        State.REFUSED: 1,
        State.LOST: NOT_SAVED,
    }
    raise typer.Exit(codes[state])


def _describe_version(client: "Client", dataset: dict[str, Any], delivery: "Delivery") -> str:
    """Describe what happens next: `raw.trades 2026-11-17.1 received; 4 checks pending`."""
    name = dataset["name"]
    versions = dataset["versions"]
    version = next((v for v in versions if v["produced_by_run_id"] == delivery.run_id), None)
    if version is None:
        return f"{name} received"
    parts = [f"{name} {version['version_tag']} received"]
    state = version["state"]
    if state in NOT_READY:
        count = client.count_checks(dataset["dataset_id"])
        parts.append(f"{count} check{'' if count == 1 else 's'} pending" if count else state)
    elif state != "READY":
        parts.append(state)
    started = client.find_triggered(dataset["consumers"])
    if started and (state == "READY" or state in NOT_READY):
        parts.append(f"{'starts' if state == 'READY' else 'then starts'} {', '.join(started)}")
    return "; ".join(parts)
