"""`floe events`: import and export events, and deliver reports queued on this host."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from floe.cli.context import (
    JsonOption,
    ProjectOption,
    date_rules,
    event_retention,
    open_project_catalog,
)
from floe.cli.output import console, err, print_json, table
from floe.errors import FloeError

if TYPE_CHECKING:
    from floe.catalog.joins.folding import Fold
    from floe.events.event_files import ImportReport, Rejected, Sink

app = typer.Typer(help="Import, export and deliver events.", no_args_is_help=True)

# Exit codes of an import. 0 means that all lines were imported.
SOME_REJECTED, STOPPED, INTERRUPTED = 1, 2, 130
TRY_LATER = 75
SHOWN_REJECTS = 20

FileArgument = Annotated[
    Path, typer.Argument(exists=True, dir_okay=False, readable=True, help="FILE.ndjson[.gz]")
]


class BadTimeError(FloeError):
    """A time on the command line is invalid."""

    def __init__(self, text: str) -> None:
        super().__init__(f"Invalid time '{text}'. Write it as 2026-09-01 or 2026-09-01T06:30:00Z.")


class UnwritableFileError(FloeError):
    """An output file cannot be written."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"Cannot write {path}: {reason}. Choose another file.")


@app.command("import")
def import_(
    file: FileArgument,
    *,
    live: Annotated[
        bool, typer.Option("--live", help="Treat as live events: fire triggers.")
    ] = False,
    rejects: Annotated[
        Path | None, typer.Option(help="File for rejected lines with their reasons.")
    ] = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import OpenLineage events, one per line. Repeat the command to continue.

    Events fill the history and trigger nothing unless --live is given. Events
    older than the catalog's retention never trigger.

    Exit codes: 0 all lines imported, 1 some rejected, 2 not finished.
    """
    try:
        report = _load(file, rejects, project, live=live)
    except KeyboardInterrupt:
        err.print("Interrupted. Run the same command again to continue.")
        raise typer.Exit(INTERRUPTED) from None
    except FloeError as error:
        err.print(str(error), style="red", markup=False)
        raise typer.Exit(STOPPED) from error
    if as_json:
        print_json({**vars(report), "was_done": report.was_done})
    else:
        console.print(_summary(file, report), markup=False, soft_wrap=True)
    raise typer.Exit(SOME_REJECTED if report.rejected else 0)


@app.command()
def export(
    *,
    since: Annotated[str | None, typer.Option(help="From this date or time (UTC).")] = None,
    until: Annotated[str | None, typer.Option(help="Before this date or time (UTC).")] = None,
    process: Annotated[str | None, typer.Option(help="Only events of this process.")] = None,
    run: Annotated[str | None, typer.Option(help="Only events of this run UUID.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="FILE.ndjson[.gz] (default: standard output)."),
    ] = None,
    project: ProjectOption = None,
) -> None:
    """Export stored events in order of time, one per line, unchanged."""
    from floe.catalog import find_process
    from floe.catalog.run_events import EventFilter
    from floe.events.event_files import export_events

    first, last = _parse_time(since), _parse_time(until)
    with open_project_catalog(project) as catalog:
        key = None
        if process is not None:
            with catalog.reading() as session:
                key = find_process(session, process).process_key
        wanted = EventFilter(run, key, first, last)
        with _open_output(output) as out:
            report = export_events(catalog, wanted, out)
    joined = f", {report.joined} of them joined to one line" if report.joined else ""
    err.print(f"{report.events:,} events exported{joined}.", markup=False)


@app.command()
def deliver(as_json: JsonOption = False) -> None:
    """Deliver the reports queued on this host. Exit 75 if some are still waiting."""
    from floe.client import Client, describe_queue

    client = Client()
    done = client.deliver()
    refused = client.spool.count_refused()
    others = client.spool.others()
    if as_json:
        elsewhere = [queue._asdict() for queue in others]
        print_json({**vars(done), "put_aside": refused, "for_others": elsewhere})
    else:
        counts = f"{done.delivered} delivered, {done.refused} refused, {done.waiting} waiting"
        console.print(f"{client.spool.folder}: {counts}.", markup=False, soft_wrap=True)
        if refused:
            err.print(f"Refused reports are in {client.spool.folder / 'refused'}.", markup=False)
        if done.reason:
            err.print(done.reason, markup=False)
        for queue in others:
            err.print(describe_queue(queue), markup=False, soft_wrap=True)
    raise typer.Exit(TRY_LATER if done.waiting else 0)


@app.command()
def fold(
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change; change nothing.")
    ] = False,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Merge datasets whose names differ only by a date.

    exposure_20260901.csv and its siblings become exposure_{date}.csv, and
    versions get the business dates of their names or folders. Declared and
    curated datasets do not change. The command can be interrupted and repeated.
    """
    from floe.catalog.joins.folding import fold_dates, plan_folds
    from floe.events.openlineage_facets import subset_locations

    rules = date_rules(project)
    with open_project_catalog(project) as catalog:
        if dry_run:
            folds = plan_folds(catalog, rules, subset_locations)
        else:
            folds = list(fold_dates(catalog, rules, subset_locations, getuser()))
    if as_json:
        print_json([vars(fold) for fold in folds])
        return
    if not folds:
        console.print("Nothing to fold.")
        return
    console.print(table("Would fold" if dry_run else "Folded", [_fold_row(fold) for fold in folds]))


def _fold_row(fold: "Fold") -> dict[str, object]:
    first, last = (fold.dates[0], fold.dates[-1]) if fold.dates else ("", "")
    return {
        "dataset": fold.dataset,
        "folded in": len(fold.folded) or None,
        "versions redated": fold.redated or None,
        "dates": f"{first}" if first == last else f"{first} – {last}",
    }


def _load(file: Path, rejects: Path | None, project: Path | None, *, live: bool) -> "ImportReport":
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    from floe.events.event_files import Watcher, import_events

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
    )
    with open_project_catalog(project) as catalog, _Rejects(rejects) as bad, bar:
        task = bar.add_task(file.name, total=file.stat().st_size)
        watcher = Watcher(
            on_bytes=lambda past: bar.update(task, completed=past), on_reject=bad.note
        )
        return import_events(
            catalog,
            file,
            historical=not live,
            retention=event_retention(project),
            dates=date_rules(project),
            started_by=getuser(),
            watcher=watcher,
        )


class _Rejects:
    """Prints the first rejected lines, and writes all of them to a file."""

    def __init__(self, path: Path | None) -> None:
        self._file = _open_append(path) if path else None
        self._count = 0

    def __enter__(self) -> "_Rejects":
        return self

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()
        if self._count > SHOWN_REJECTS:
            err.print(f"… and {self._count - SHOWN_REJECTS:,} more rejected lines.", markup=False)

    def note(self, rejected: "Rejected") -> None:
        self._count += 1
        if self._file:
            self._file.write(f"{rejected}\n")
            self._file.flush()
        if self._count <= SHOWN_REJECTS:
            err.print(str(rejected), style="red", markup=False)


def _open_append(path: Path) -> TextIO:
    try:
        return path.open("a", encoding="utf-8")
    except OSError as error:
        raise UnwritableFileError(path, _reason(error)) from error


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _summary(file: Path, report: "ImportReport") -> str:
    rejected = f" {report.rejected:,} lines were rejected." if report.rejected else ""
    if report.was_done:
        return f"{file.name} is already imported: {report.lines:,} lines.{rejected}"
    resumed = f", continued after line {report.resumed_at:,}" if report.resumed_at else ""
    return f"{file.name}: {report.lines_now:,} lines imported{resumed}.{rejected}"


def _parse_time(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadTimeError(text) from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)


@contextmanager
def _open_output(path: Path | None) -> Iterator["Sink"]:
    """Open standard output, or a file that appears only once it is complete."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    # Fail before all events are read, not after.
    if path.is_dir():
        raise UnwritableFileError(path, os.strerror(errno.EISDIR))
    try:
        with _open_atomic(path) as out:
            yield out
    except OSError as error:
        raise UnwritableFileError(path, _reason(error)) from error


@contextmanager
def _open_atomic(path: Path) -> Iterator["Sink"]:
    import gzip

    beside = path.with_name(f"{path.name}.part")
    try:
        with gzip.open(beside, "wb") if path.suffix == ".gz" else beside.open("wb") as out:
            yield out
        beside.replace(path)
    except BaseException:
        # Report the first error, not a failed removal.
        with suppress(OSError):
            beside.unlink()
        raise
