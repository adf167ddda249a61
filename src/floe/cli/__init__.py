"""The command line: one module per command, assembled here."""

import os
import sys

import typer

from floe import __version__
from floe.cli import (
    analyze,
    api,
    backfill,
    catalog,
    check,
    compact,
    compile,  # noqa: A004 - named after the command
    dataset,
    datasets,
    diff,
    down,
    drift,
    events,
    init,
    lineage,
    partitions,
    process,
    processes,
    read,
    register,
    retract,
    run,
    runs,
    schema,
    session,
    show,
    spark,
    status,
    token,
    up,
    vacuum,
    validate,
    versions,
    why,
)
from floe.cli.output import err
from floe.errors import FloeError

app = typer.Typer(
    name="floe",
    help="Declare datasets and processes, run them, and see what produced each version.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

WRITE, READ = "Define a project", "Inspect the catalog"
JOBS, RUN = "Report from legacy jobs", "Run and operate"
app.command(rich_help_panel=WRITE)(init.init)
app.command(rich_help_panel=WRITE)(validate.validate)
app.command(rich_help_panel=WRITE)(compile.compile)
app.command(rich_help_panel=WRITE)(schema.schema)
app.command(rich_help_panel=WRITE)(register.register)
app.command(rich_help_panel=READ)(datasets.datasets)
app.command(rich_help_panel=READ)(dataset.dataset)
app.command(rich_help_panel=READ)(versions.versions)
app.command(rich_help_panel=READ)(read.read)
app.command(rich_help_panel=READ)(diff.diff)
app.command(rich_help_panel=READ)(processes.processes)
app.command(rich_help_panel=READ)(process.process)
app.command(rich_help_panel=READ)(runs.runs)
app.command(rich_help_panel=READ)(show.show)
app.command(rich_help_panel=READ)(lineage.lineage)
app.command(rich_help_panel=READ)(why.why)
app.add_typer(drift.app, name="drift", rich_help_panel=READ)
app.command(rich_help_panel=JOBS)(register.register_dataset)
app.command(rich_help_panel=JOBS)(register.register_process)
app.add_typer(events.app, name="events", rich_help_panel=JOBS)
app.command(rich_help_panel=RUN)(up.up)
app.command(rich_help_panel=RUN)(status.status)
app.command(rich_help_panel=RUN)(down.down)
app.command(rich_help_panel=RUN)(run.run)
app.command(rich_help_panel=RUN)(backfill.backfill)
app.command(rich_help_panel=RUN)(check.check)
app.command(rich_help_panel=RUN)(retract.retract)
app.command(rich_help_panel=RUN)(vacuum.vacuum)
app.command(rich_help_panel=RUN)(compact.compact)
app.command(rich_help_panel=RUN)(analyze.analyze)
app.command(rich_help_panel=RUN)(api.api)
app.add_typer(partitions.app, name="partitions", rich_help_panel=RUN)
app.add_typer(spark.app, name="spark", rich_help_panel=RUN)
app.add_typer(session.app, name="session", rich_help_panel=RUN)
app.add_typer(token.app, name="token", rich_help_panel=RUN)
app.add_typer(catalog.app, name="catalog", rich_help_panel=RUN)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"floe {__version__}")  # noqa: T201
        raise typer.Exit


@app.callback()
def floe(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show floe's version."
    ),
) -> None:
    """Declare datasets and processes, run them, and see what produced each version."""


def main() -> None:
    """Run a command; print an error that the user can act on without a traceback."""
    try:
        app()
    except FloeError as error:
        err.print(str(error), style="red", markup=False)
        sys.exit(error.exit_code)
    finally:
        _flush_output()


def _flush_output() -> None:
    """Flush standard output; ignore a closed pipe, as with `| head`."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes again at exit and would print an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
