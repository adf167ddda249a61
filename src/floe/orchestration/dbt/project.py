"""Which dbt project takes part, and where its files are."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from floe.execution.site import Site
from floe.orchestration.loading import Loading
from floe.spec.findings import KeyPath
from floe.spec.orchestration import Dbt
from floe.spec.transforms import DbtTransform

PROJECT_FILE = "dbt_project.yml"
TARGET = "target"
MANIFEST = "manifest.json"
DBT = ("orchestration", "dbt")
TRANSFORM = ("transforms", 0)


@dataclass(frozen=True)
class DbtProject:
    """A dbt project, as floe.yaml declares it."""

    site: Site
    folder: Path
    name: str
    profile: str
    """The profile that its dbt_project.yml asks for."""
    config: Dbt
    transform: DbtTransform
    declared: KeyPath
    """Where floe.yaml says so, for findings."""

    @property
    def state(self) -> Path:
        """Where floe keeps what it generates for dbt."""
        return self.site.state_dir / "dbt"

    @property
    def target_folder(self) -> Path:
        return self.folder / TARGET

    @property
    def manifest(self) -> Path:
        if self.config.manifest_path is not None:
            return self.site.root / self.config.manifest_path
        return self.target_folder / MANIFEST

    @property
    def is_parsed_here(self) -> bool:
        """Whether floe makes the manifest; one that floe.yaml names is made by somebody else."""
        return self.config.manifest_path is None

    @property
    def target(self) -> str:
        named = self.config.target or self.transform.target
        return named or self.site.platform.environment

    @property
    def vars(self) -> Mapping[str, Any]:
        return self.transform.vars

    def shown(self, path: Path) -> str:
        """Name a file as the user would: relative to the project."""
        root = self.site.root
        return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def find_dbt(loading: Loading) -> DbtProject | None:
    """Return the dbt project of a floe project, if it has one."""
    spec = loading.site.spec
    if spec.orchestration.dbt is None and not spec.transforms:
        return None
    if len(spec.transforms) > 1:
        hint = "Make one project of them, or install the others as packages of the first."
        raise loading.refusal(("transforms", 1), "is a second dbt project", hint)
    transform = spec.transforms[0] if spec.transforms else DbtTransform(type="dbt")
    config = spec.orchestration.dbt or Dbt()
    folder, declared = _folder(loading, config, transform)
    named = _names(loading, folder, declared)
    return DbtProject(
        loading.site, folder, named["name"], named["profile"], config, transform, declared
    )


def _folder(loading: Loading, config: Dbt, transform: DbtTransform) -> tuple[Path, KeyPath]:
    root = loading.site.root
    if config.project_dir is not None:
        return root / config.project_dir, (*DBT, "project_dir")
    if loading.site.spec.transforms:
        return root / transform.path, (*TRANSFORM, "path")
    # A manifest alone: dbt writes it into a folder of its project.
    assert config.manifest_path is not None
    return (root / config.manifest_path).parent.parent, (*DBT, "manifest_path")


def _names(loading: Loading, folder: Path, declared: KeyPath) -> dict[str, str]:
    """Read what a project and its profile are called."""
    file = folder / PROJECT_FILE
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        hint = "Name the folder of a dbt project."
        raise loading.refusal(declared, f"there is no {file}", hint) from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        message = f"{file} cannot be read: {_first_line(error)}"
        raise loading.refusal(declared, message, "Correct it.") from None
    if not isinstance(content, dict) or not isinstance(content.get("name"), str):
        raise loading.refusal(declared, f"{file} names no project", "Add name: to it.")
    name = content["name"]
    return {"name": name, "profile": str(content.get("profile") or name)}


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())
