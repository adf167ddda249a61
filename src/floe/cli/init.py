"""`floe init [FOLDER]`: create a small project that runs, from a template."""

import re
import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from floe.cli.output import console
from floe.errors import FloeError

TEMPLATES = Path(__file__).with_name("templates")
NAME_LINE = re.compile(r"^name: .*$", re.MULTILINE)
TemplateName = Literal["sql", "dbt", "python"]

NEXT_STEPS: dict[TemplateName, tuple[tuple[str, str], ...]] = {
    "sql": (
        ("floe validate", "check floe.yaml"),
        ("floe run --all --date 2026-01-05", "read the CSV file and compute"),
        ("floe read payments.by_country", "show the result"),
        ("floe lineage payments.by_country", "show where it comes from"),
    ),
    "dbt": (
        ("floe validate", "check floe.yaml"),
        ("floe backfill first_days", "run dbt for two days"),
        ("floe read payments.by_day", "show the result"),
        ("floe up", "start Dagster, the API and Spark"),
    ),
}
NEXT_STEPS["python"] = NEXT_STEPS["sql"]


class FilesExistError(FloeError):
    """A project would overwrite files that are already there."""

    def __init__(self, folder: Path, names: list[str]) -> None:
        shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        super().__init__(
            f"{folder} already contains {shown}. Nothing was written. "
            "Name an empty folder: floe init FOLDER"
        )


class NotAFolderError(FloeError):
    """The project folder to create is a file."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is a file. Name a folder: floe init FOLDER")


def init(
    folder: Annotated[Path, typer.Argument(help="Folder to create the project in.")] = Path(),
    template: Annotated[
        TemplateName,
        typer.Option(help="How the project computes: Spark SQL, dbt models or pandas functions."),
    ] = "sql",
) -> None:
    """Create a small, working project. Never overwrites files."""
    names = write_template(template, folder)
    _print(f"Created {len(names)} files in {folder.resolve()}:")
    for name in names:
        _print(f"  {name}")
    _print("\nNext:")
    if folder.resolve() != Path.cwd():
        _print(f"  cd {shlex.quote(str(folder))}")
    width = max(len(command) for command, _ in NEXT_STEPS[template])
    for command, purpose in NEXT_STEPS[template]:
        _print(f"  {command:<{width}}   # {purpose}")


def _print(line: str) -> None:
    # Commands are copied from the screen: never break them.
    console.print(line, markup=False, soft_wrap=True)


def write_template(template: str, folder: Path) -> list[str]:
    """Copy a template into a folder, name the project after it; return the file names."""
    if folder.exists() and not folder.is_dir():
        raise NotAFolderError(folder)
    contents = _template_files(template)
    existing = [name for name in contents if (folder / name).exists()]
    if existing:
        raise FilesExistError(folder.resolve(), existing)
    contents["floe.yaml"] = NAME_LINE.sub(
        f"name: {project_name(folder)}", contents["floe.yaml"], count=1
    )
    for name, text in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(contents)


def project_name(folder: Path) -> str:
    """Turn a folder's name into a valid project name."""
    name = re.sub(r"[^a-z0-9_-]+", "-", folder.resolve().name.lower()).strip("-_")
    return name or "project"


def _template_files(template: str) -> dict[str, str]:
    root = TEMPLATES / template
    paths = sorted(path for path in root.rglob("*") if path.is_file() and path.suffix != ".pyc")
    # Packaging tools read a .gitignore, so the template holds it without the dot.
    return {
        path.relative_to(root).as_posix().replace("gitignore", ".gitignore"): path.read_text(
            encoding="utf-8"
        )
        for path in paths
    }
