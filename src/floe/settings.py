"""Where a project and its platform are found: files, folders and the FLOE_ variables."""

import os
import stat
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from floe.errors import FloeError

FLOE_YAML = "floe.yaml"
STATE_FOLDER = ".floe"
OTHERS = 0o077


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
        return self.root / STATE_FOLDER

    @property
    def compiled(self) -> Path:
        return self.state_dir / "compiled_artifacts.json"


def make_private_folder(folder: Path) -> None:
    """Make a folder, and missing ones above it, for their owner alone.

    What floe keeps holds the bodies of events and the logs of jobs. A state folder that others can
    open is closed to them; folders outside of it stay as they are.
    """
    for path in (*reversed(folder.parents), folder):
        if not path.is_dir():
            path.mkdir(mode=0o700, exist_ok=True)
        elif STATE_FOLDER in path.parts:
            keep_private(path)


def make_private_file(path: Path) -> None:
    """Make an empty file for its owner alone, unless there is one; one in a state folder is closed.

    SQLite gives the files beside a database the permissions of the database.
    """
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        if STATE_FOLDER in path.parts:
            keep_private(path)


def keep_private(path: Path) -> None:
    """Take a file or folder away from everybody but its owner; only the owner can do that."""
    with suppress(FileNotFoundError):
        found = path.lstat()
        is_loose = bool(found.st_mode & OTHERS) and not stat.S_ISLNK(found.st_mode)
        if is_loose and found.st_uid == os.geteuid():
            path.chmod(stat.S_IMODE(found.st_mode) & ~OTHERS)


def tighten_state(folder: Path, *, leave: Collection[Path] = ()) -> None:
    """Close a state folder, and all files and folders in it, to everybody but their owner.

    Folders to leave hold data, often very many files: the state folder above keeps others out.
    """
    keep_private(folder)
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if Path(parent, name) not in leave]
        for name in (*folders, *files):
            keep_private(Path(parent, name))


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
