"""dbt in this process. It changes the working folder and holds what is global: one at a time."""

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floe.errors import FloeError
from floe.orchestration.dbt.profile import ensure_profile
from floe.orchestration.dbt.project import DbtProject

if TYPE_CHECKING:
    from dbt.cli.main import dbtRunnerResult
    from dbt.contracts.graph.manifest import Manifest

ONE_AT_A_TIME = threading.RLock()

Callback = Callable[[Any], None]


class DbtFailedError(FloeError):
    """dbt gave up before it came to a model."""

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
    """Run a command of dbt, in silence: what it says comes by the callback."""
    from dbt.cli.main import dbtRunner

    arguments = [*command, *_flags(project, {**project.vars, **(variables or {})})]
    with _alone():
        callbacks = [] if callback is None else [callback]
        return dbtRunner(manifest=manifest, callbacks=callbacks).invoke(arguments)


def parse(project: DbtProject, *, write: bool = True) -> "Manifest":
    """Have dbt read the project, and write its manifest; what it has read before it remembers."""
    result = invoke(project, ["parse", "--write-json" if write else "--no-write-json"])
    if not result.success:
        raise DbtFailedError("parse", project.shown(project.folder), reason(result))
    manifest: Manifest = result.result  # type: ignore[assignment]
    return manifest


def reason(result: "dbtRunnerResult") -> str:
    """Return in one line why dbt gave up."""
    said = str(result.exception) if result.exception is not None else "it did not say why"
    return " ".join(said.split())


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
