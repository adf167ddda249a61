"""Run an executable; variables and a JSON file describe its inputs and outputs."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floe.errors import FloeError
from floe.execution.engines.contract import InPlace, Outputs, Work

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from floe.execution.formats.contract import StoredVersion

RUN_FILE, REPORT_FILE = "FLOE_RUN_FILE", "FLOE_REPORT_FILE"
DIRECTORIES = frozenset({"parquet", "csv", "fixed_width", "files"})
LAST_LINES = 20
GRACE_SECONDS = 10


class CommandFailedError(FloeError):
    """A command failed."""

    def __init__(self, process: str, code: int, lines: list[str]) -> None:
        last = "".join(f"\n  {line}" for line in lines[-5:])
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        super().__init__(f"The command of '{process}' {how}.{last}")


class CommandNotFoundError(FloeError):
    """A command's executable cannot be started."""

    def __init__(self, process: str, command: str, reason: str) -> None:
        super().__init__(f"The command of '{process}' cannot be started: {command}: {reason}.")


class InvalidReportError(FloeError):
    """The report that a command wrote is invalid."""

    def __init__(self, process: str, reason: str) -> None:
        super().__init__(f"The command of '{process}' wrote an invalid report: {reason}.")


class CommandEngine:
    """Runs the `command` of a process in the project's folder."""

    def run(self, work: Work) -> Outputs:
        """Run the command, log its output, and take over what it wrote."""
        work.folder.mkdir(parents=True, exist_ok=True)
        description = _describe(work)
        run_file, report_file = work.folder / "run.json", work.folder / "report.json"
        report_file.unlink(missing_ok=True)
        run_file.write_text(json.dumps(description, indent=2, default=str), encoding="utf-8")
        _execute(
            work, {RUN_FILE: str(run_file), REPORT_FILE: str(report_file), **_flat(description)}
        )
        reported = _read_report(work, report_file)
        return {
            alias: _take_over(work, alias, description["outputs"][alias], reported.get(alias, {}))
            for alias in work.drafts
        }


def _describe(work: Work) -> dict[str, Any]:
    outputs = {alias: _output(work, alias) for alias in work.drafts}
    return {
        "run_id": work.run_id,
        "project": work.workspace.site.spec.name,
        "process": work.process,
        "business_date": work.business_date.isoformat(),
        "partition": work.bound["partition"],
        "params": dict(work.params),
        "inputs": {alias: _input(work, alias) for alias in work.inputs},
        "outputs": outputs,
    }


def _input(work: Work, alias: str) -> dict[str, Any]:
    """Describe where an input is; convert it to Parquet unless it is one set of files."""
    versions: list[StoredVersion] = list(work.inputs[alias])
    described = {
        "dataset": work.spec.inputs[alias].dataset,
        "versions": [version.tag for version in versions],
        "format": versions[0].spec.format if versions else None,
        "path": None,
    }
    if len(versions) == 1 and versions[0].spec.format in DIRECTORIES:
        described["path"] = _folder(versions[0].path or "")
        described["files"] = [file["path"] for file in versions[0].details.get("files", ())]
        return described
    if versions:
        target = work.folder / "inputs" / alias
        work.frames[alias].write.mode("overwrite").parquet(str(target))
        described |= {"path": str(target), "format": "parquet"}
    return described


def _folder(path: str) -> str:
    """Return the folder of a path or file pattern."""
    return str(Path(path).parent) if "*" in path else path


def _output(work: Work, alias: str) -> dict[str, Any]:
    location = work.drafts[alias].stored
    own = location.spec.format in DIRECTORIES
    path = Path(location.path or "") if own else work.folder / "outputs" / alias
    path.mkdir(parents=True, exist_ok=True)
    return {
        "dataset": location.dataset,
        "version": location.tag,
        "format": location.spec.format if own else "parquet",
        "path": str(path),
    }


def _flat(description: Mapping[str, Any]) -> dict[str, str]:
    """Return the description as environment variables, for shell scripts."""
    names = ("run_id", "process", "business_date", "partition")
    variables = {f"FLOE_{name.upper()}": str(description[name]) for name in names}
    for kind in ("inputs", "outputs"):
        for alias, described in description[kind].items():
            variables[f"FLOE_{kind[:-1].upper()}_{alias.upper()}"] = described["path"] or ""
    for name, value in description["params"].items():
        variables[f"FLOE_PARAM_{name.upper()}"] = str(value)
    return variables


def _execute(work: Work, variables: Mapping[str, str]) -> None:
    site = work.workspace.site
    command = list(work.spec.command or ())
    given = {name: site.reveal(value) for name, value in work.spec.environment.items()}
    # `python` is the interpreter that runs floe, even if the shell has no such command.
    path = os.pathsep.join([str(Path(sys.executable).parent), site.environ.get("PATH", "")])
    try:
        process = subprocess.Popen(  # noqa: S603
            command,
            cwd=site.root / (work.spec.working_dir or "."),
            env={**site.environ, "PATH": path, **variables, **given},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        reason = error.strerror or str(error)
        raise CommandNotFoundError(work.process, command[0], reason) from error
    work.cancellation.on_cancel(lambda: _end(process))
    lines = []
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip())
            del lines[:-LAST_LINES]
            work.log.say(lines[-1])
    if process.returncode:
        raise CommandFailedError(work.process, process.returncode, lines)


def _end(process: "subprocess.Popen[str]") -> None:
    """Stop a command and the processes it started."""
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        try:
            os.killpg(process.pid, signal_number)
            process.wait(GRACE_SECONDS)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def _read_report(work: Work, path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        return {}
    try:
        outputs = json.loads(path.read_text(encoding="utf-8"))["outputs"]
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidReportError(
            work.process, f"{path.name} has no valid 'outputs' ({error})"
        ) from error
    unknown = [alias for alias in outputs if alias not in work.drafts]
    if unknown:
        raise InvalidReportError(work.process, f"unknown output '{unknown[0]}'")
    return dict(outputs)


def _take_over(
    work: Work, alias: str, described: Mapping[str, Any], reported: Mapping[str, Any]
) -> "DataFrame | InPlace":
    """Return a command's output: already in place, or a frame of the files to load."""
    if work.drafts[alias].stored.spec.format in DIRECTORIES:
        return InPlace(rows=reported.get("rows"))
    path = str(reported.get("path") or described["path"])
    if str(reported.get("format", "parquet")) == "csv":
        return work.spark.read.csv(path, header=True, inferSchema=True)
    return work.spark.read.parquet(path)
