"""Any executable: it learns from its environment and a JSON file what to read and write."""

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

    from floe.execution.formats.contract import VersionPlace

RUN_FILE, REPORT_FILE = "FLOE_RUN_FILE", "FLOE_REPORT_FILE"
DIRECTORIES = frozenset({"parquet", "csv", "fixed_width", "files"})
LAST_LINES = 20
GRACE_SECONDS = 10


class CommandFailedError(FloeError):
    """A command ended with an exit code that is not zero."""

    def __init__(self, process: str, code: int, said: list[str]) -> None:
        last = "".join(f"\n  {line}" for line in said[-5:])
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        super().__init__(f"The command of '{process}' {how}.{last}")


class CommandNotFoundError(FloeError):
    """There is no such executable."""

    def __init__(self, process: str, command: str, reason: str) -> None:
        super().__init__(f"The command of '{process}' cannot be started: {command}: {reason}.")


class WrongReportError(FloeError):
    """What a command reports of its outputs cannot be used."""

    def __init__(self, process: str, reason: str) -> None:
        super().__init__(f"The report of the command of '{process}' is wrong: {reason}.")


class CommandEngine:
    """Runs the `command` of a process in the project's folder."""

    def run(self, work: Work) -> Outputs:
        """Run the command, keep what it says, and take over what it wrote."""
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
        "inputs": {alias: _input(work, alias, places) for alias, places in work.inputs.items()},
        "outputs": outputs,
    }


def _input(work: Work, alias: str, places: Any) -> dict[str, Any]:
    """Say where an input is. What is not files already is handed over as Parquet."""
    versions: list[VersionPlace] = list(places)
    described = {
        "dataset": work.spec.inputs[alias].dataset,
        "versions": [place.tag for place in versions],
        "format": versions[0].spec.format if versions else None,
        "path": None,
    }
    if len(versions) == 1 and versions[0].spec.format in DIRECTORIES:
        described["path"] = _folder(versions[0].path or "")
        described["files"] = [one["path"] for one in versions[0].details.get("files", ())]
        return described
    if versions:
        target = work.folder / "inputs" / alias
        work.frames[alias].write.mode("overwrite").parquet(str(target))
        described |= {"path": str(target), "format": "parquet"}
    return described


def _folder(path: str) -> str:
    """The folder of what may be a pattern of files."""
    return str(Path(path).parent) if "*" in path else path


def _output(work: Work, alias: str) -> dict[str, Any]:
    place = work.drafts[alias].place
    own = place.spec.format in DIRECTORIES
    path = Path(place.path or "") if own else work.folder / "outputs" / alias
    path.mkdir(parents=True, exist_ok=True)
    return {
        "dataset": place.dataset,
        "version": place.tag,
        "format": place.spec.format if own else "parquet",
        "path": str(path),
    }


def _flat(description: Mapping[str, Any]) -> dict[str, str]:
    """The same, as far as a shell script wants it: one variable for each."""
    names = ("run_id", "process", "business_date", "partition")
    variables = {f"FLOE_{name.upper()}": str(description[name]) for name in names}
    for kind in ("inputs", "outputs"):
        for alias, one in description[kind].items():
            variables[f"FLOE_{kind[:-1].upper()}_{alias.upper()}"] = one["path"] or ""
    for name, value in description["params"].items():
        variables[f"FLOE_PARAM_{name.upper()}"] = str(value)
    return variables


def _execute(work: Work, variables: Mapping[str, str]) -> None:
    site = work.workspace.site
    command = list(work.spec.command or ())
    given = {name: site.reveal(value) for name, value in work.spec.environment.items()}
    # `python` is the one that runs floe, also where the shell knows none by that name.
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
    said = []
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line.rstrip())
            del said[:-LAST_LINES]
            work.log.say(said[-1])
    if process.returncode:
        raise CommandFailedError(work.process, process.returncode, said)


def _end(process: "subprocess.Popen[str]") -> None:
    """End a command and all that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        try:
            os.killpg(process.pid, number)
            process.wait(GRACE_SECONDS)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def _read_report(work: Work, path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        return {}
    try:
        outputs = json.loads(path.read_text(encoding="utf-8"))["outputs"]
    except (ValueError, KeyError, TypeError) as error:
        raise WrongReportError(work.process, f"{path.name} holds no outputs ({error})") from error
    unknown = [alias for alias in outputs if alias not in work.drafts]
    if unknown:
        raise WrongReportError(work.process, f"it has no output '{unknown[0]}'")
    return dict(outputs)


def _take_over(
    work: Work, alias: str, described: Mapping[str, Any], reported: Mapping[str, Any]
) -> "DataFrame | InPlace":
    """Take what a command wrote: where it is to live already, or as files to be loaded."""
    if work.drafts[alias].place.spec.format in DIRECTORIES:
        return InPlace(rows=reported.get("rows"))
    path = str(reported.get("path") or described["path"])
    if str(reported.get("format", "parquet")) == "csv":
        return work.spark.read.csv(path, header=True, inferSchema=True)
    return work.spark.read.parquet(path)
