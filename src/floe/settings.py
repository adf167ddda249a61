"""Where a project and its platform are found: files, folders and the FLOE_ variables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from floe.errors import FloeError

FLOE_YAML = "floe.yaml"


class ProjectNotFoundError(FloeError):
    """No floe.yaml was found where a project was looked for."""

    def __init__(self, start: Path) -> None:
        super().__init__(
            f"No {FLOE_YAML} in {start} or any folder above it. "
            "Go to your project's folder, or name it with --project."
        )


class PlatformFileNotFoundError(FloeError):
    """A platform file was asked for that does not exist."""

    def __init__(self, path: Path, variable: str) -> None:
        super().__init__(
            f"{variable} asks for {path}, which does not exist. "
            f"Write that file, or unset {variable} to use the embedded default."
        )


@dataclass(frozen=True)
class ProjectPaths:
    """The folder of a project, and what floe keeps in it."""

    root: Path

    @property
    def floe_yaml(self) -> Path:
        return self.root / FLOE_YAML

    @property
    def state_dir(self) -> Path:
        return self.root / ".floe"

    @property
    def compiled(self) -> Path:
        return self.state_dir / "compiled_artifacts.json"


def make_private_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for their owner alone.

    What floe keeps holds the bodies of events and the logs of jobs. A folder that is there
    already stays as it is: somebody may share it on purpose.
    """
    for one in (*reversed(folder.parents), folder):
        if not one.is_dir():
            one.mkdir(mode=0o700, exist_ok=True)


def find_project(
    start: Path | None = None, environ: Mapping[str, str] | None = None
) -> ProjectPaths:
    """Find the project: the folder asked for, else FLOE_PROJECT, else here or above."""
    environ = os.environ if environ is None else environ
    if start is None and "FLOE_PROJECT" in environ:
        start = Path(environ["FLOE_PROJECT"])
    if start is not None:
        return _project_at(start)
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / FLOE_YAML).is_file():
            return ProjectPaths(folder)
    raise ProjectNotFoundError(here)


def _project_at(folder: Path) -> ProjectPaths:
    folder = folder.parent if folder.name == FLOE_YAML else folder
    if not (folder / FLOE_YAML).is_file():
        raise ProjectNotFoundError(folder)
    return ProjectPaths(folder.resolve())


def platform_file(paths: ProjectPaths, environ: Mapping[str, str] | None = None) -> Path | None:
    """Choose the platform file, or None for the embedded default."""
    environ = os.environ if environ is None else environ
    if named := environ.get("FLOE_PLATFORM_FILE"):
        return _existing(paths.root / named, "FLOE_PLATFORM_FILE")
    if env := environ.get("FLOE_PLATFORM_ENV"):
        return _existing(paths.root / f"platform.{env}.yaml", "FLOE_PLATFORM_ENV")
    default = paths.root / "platform.yaml"
    return default if default.is_file() else None


def _existing(path: Path, variable: str) -> Path:
    if not path.is_file():
        raise PlatformFileNotFoundError(path, variable)
    return path
