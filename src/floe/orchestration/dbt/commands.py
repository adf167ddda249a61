"""Run dbt commands in this process, one at a time (dbt changes directories)."""

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floe.errors import FloeError
from floe.orchestration.dbt.dbt_project import TRANSFORM, DbtProject, ensure_profile
from floe.orchestration.loading import Loading

if TYPE_CHECKING:
    from dbt.cli.main import dbtRunnerResult
    from dbt.contracts.graph.manifest import Manifest

ONE_AT_A_TIME = threading.RLock()

Callback = Callable[[Any], None]


class DbtFailedError(FloeError):
    """dbt failed before it ran a model."""

    def __init__(self, command: str, folder: str, reason: str) -> None:
        self.reason = reason
        super().__init__(f"dbt {command} of {folder} failed: {reason}")


def invoke(
    project: DbtProject,
    command: list[str],
    *,
    variables: Mapping[str, Any] | None = None,
    manifest: "Manifest | None" = None,
    callback: Callback | None = None,
) -> "dbtRunnerResult":
    """Run a dbt command. It prints nothing; its messages go to the callback."""
    from dbt.cli.main import dbtRunner

    arguments = [*command, *_flags(project, {**project.vars, **(variables or {})})]
    with _alone():
        callbacks = [] if callback is None else [callback]
        return dbtRunner(manifest=manifest, callbacks=callbacks).invoke(arguments)


def parse(project: DbtProject, *, write: bool = True) -> "Manifest":
    """Parse the project and write its manifest. dbt reparses only changed files."""
    result = invoke(project, ["parse", "--write-json" if write else "--no-write-json"])
    if not result.success:
        raise DbtFailedError("parse", project.shown(project.folder), reason(result))
    manifest: Manifest = result.result  # type: ignore[assignment]
    return manifest


def reason(result: "dbtRunnerResult") -> str:
    """Return in one line why dbt failed."""
    message = str(result.exception) if result.exception is not None else "it gave no reason"
    return " ".join(message.split())


def _flags(project: DbtProject, variables: Mapping[str, Any]) -> list[str]:
    named = {
        "--project-dir": project.folder,
        "--profiles-dir": ensure_profile(project),
        "--target": project.target,
        "--target-path": project.target_folder,
        "--log-path": project.state / "logs",
        "--log-level": "none",
    }
    flags = [text for name, value in named.items() for text in (name, str(value))]
    if variables:
        flags += ["--vars", json.dumps(variables)]
    return [*flags, "--no-send-anonymous-usage-stats", "--no-version-check"]


@contextmanager
def _alone() -> Iterator[None]:
    with ONE_AT_A_TIME:
        before = Path.cwd()
        try:
            yield
        finally:
            os.chdir(before)


def selected_ids(
    loading: Loading, project: DbtProject, manifest: Mapping[str, Any]
) -> Set[str] | None:
    """Return the unique ids that `select` and `exclude` leave; None if neither is set."""
    select, exclude = project.transform.select, project.transform.exclude
    if not select and not exclude:
        return None
    command = ["ls", "--output", "json", "--output-keys", "unique_id", "--quiet"]
    command += [word for selector in select for word in ("--select", selector)]
    command += [word for selector in exclude for word in ("--exclude", selector)]
    result = invoke(project, command)
    key = (*TRANSFORM, "select" if select else "exclude")
    if not result.success:
        raise loading.refusal(key, f"dbt rejects it: {reason(result)}", "Correct it.")
    listed = [str(line) for line in result.result or ()]  # type: ignore[union-attr]
    selected = {name for line in listed for name in [_unique_id(line)] if name in manifest["nodes"]}
    if not selected:
        raise loading.refusal(key, "selects no model", "List the models with: dbt ls.")
    return selected


def _unique_id(line: str) -> str:
    return str(json.loads(line)["unique_id"])
