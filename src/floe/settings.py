"""Find a project and its platform file; keep floe's own files private."""

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
    """No floe.yaml was found."""

    def __init__(self, start: Path) -> None:
        super().__init__(
            f"No {FLOE_YAML} in {start} or any folder above it. "
            "Change to your project's folder, or name it with --project."
        )


class PlatformFileNotFoundError(FloeError):
    """The requested platform file does not exist."""

    def __init__(self, path: Path, variable: str) -> None:
        super().__init__(
            f"{variable} names {path}, which does not exist. "
            f"Create that file, or unset {variable} to use the embedded default."
        )


@dataclass(frozen=True)
class ProjectPaths:
    """The folder of a project, and floe's files in it."""

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
    """Create a folder and its missing parents, accessible by their owner only.

    floe's files contain event bodies and job logs. An existing state folder that others can open
    is made private; folders outside of it do not change.
    """
    for path in (*reversed(folder.parents), folder):
        if not path.is_dir():
            path.mkdir(mode=0o700, exist_ok=True)
        elif STATE_FOLDER in path.parts:
            keep_private(path)


def make_private_file(path: Path) -> None:
    """Create an empty private file; make an existing one in a state folder private.

    SQLite gives its side files the permissions of the database file.
    """
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        if STATE_FOLDER in path.parts:
            keep_private(path)


def keep_private(path: Path) -> None:
    """Remove all access but the owner's from a file or folder, if this user owns it."""
    with suppress(FileNotFoundError):
        status = path.lstat()
        is_loose = bool(status.st_mode & OTHERS) and not stat.S_ISLNK(status.st_mode)
        if is_loose and status.st_uid == os.geteuid():
            path.chmod(stat.S_IMODE(status.st_mode) & ~OTHERS)


def tighten_state(folder: Path, *, leave: Collection[Path] = ()) -> None:
    """Make a state folder private, with all files and folders in it.

    Skips the folders in `leave`: they may hold very many data files, and the private state folder
    above already protects them.
    """
    keep_private(folder)
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if Path(parent, name) not in leave]
        for name in (*folders, *files):
            keep_private(Path(parent, name))


def find_project(
    start: Path | None = None, environ: Mapping[str, str] | None = None
) -> ProjectPaths:
    """Find the project: the given folder, else FLOE_PROJECT, else here or above."""
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
