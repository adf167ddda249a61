"""Write projects to a folder and load them."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

from dagster import AssetKey, Definitions

from floe.orchestration import FloeDefinitions
from floe.orchestration.definitions import build_parts
from floe.orchestration.loading import load

if TYPE_CHECKING:
    from dagster import AssetSpec

    from floe.orchestration.loading import Parts


def make_project(folder: Path, floe_yaml: str = "", files: Mapping[str, str] | None = None) -> Path:
    """Write floe.yaml and other files; their names may have folders. Return the folder.

    A floe.yaml that names no project is called `test`.
    """
    text = dedent(floe_yaml)
    if not text.lstrip("\n").startswith("name:"):
        text = f"name: test\n{text}"
    for name, content in {"floe.yaml": text, **(files or {})}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(content), encoding="utf-8")
    return folder


def load_parts(folder: Path, environ: Mapping[str, str] | None = None) -> "Parts":
    """Load the parts of a project as FloeDefinitions does, without building definitions."""
    return build_parts(load(folder, environ))


def load_definitions(folder: Path) -> Definitions:
    """Load the definitions of a project, and let Dagster check all of them."""
    definitions = FloeDefinitions.from_compiled_artifacts(folder)
    Definitions.validate_loadable(definitions)
    return definitions


def spec_of(parts: "Parts", dotted: str) -> "AssetSpec":
    """Return an asset by its dotted name."""
    return parts.specs[AssetKey(dotted.split("."))]
