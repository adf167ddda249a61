"""The dbt project that floe.yaml declares: its folder, target and profile."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from floe.execution.site import Site
from floe.orchestration.loading import Loading
from floe.settings import make_private_folder
from floe.spec.findings import KeyPath
from floe.spec.identity import DEFAULT_SCHEMA
from floe.spec.orchestration import Dbt
from floe.spec.project import DbtTransform

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
    """The profile named in dbt_project.yml."""
    config: Dbt
    transform: DbtTransform
    declared: KeyPath
    """The key in floe.yaml that declares it, for findings."""

    @property
    def state(self) -> Path:
        """The folder of files that floe generates for dbt."""
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
        """Whether floe writes the manifest. One named in floe.yaml comes from elsewhere."""
        return self.config.manifest_path is None

    @property
    def target(self) -> str:
        named = self.config.target or self.transform.target
        return named or self.site.platform.environment

    @property
    def vars(self) -> Mapping[str, Any]:
        return self.transform.vars

    def shown(self, path: Path) -> str:
        """Return a path relative to the project, for messages."""
        root = self.site.root
        return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def find_dbt(loading: Loading) -> DbtProject | None:
    """Return the dbt project of a floe project, if it has one."""
    spec = loading.site.spec
    if spec.orchestration.dbt is None and not spec.transforms:
        return None
    if len(spec.transforms) > 1:
        hint = "Merge them, or install the others as packages of the first."
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
    # Only a manifest is named: dbt writes it to <project>/target/.
    assert config.manifest_path is not None
    return (root / config.manifest_path).parent.parent, (*DBT, "manifest_path")


def _names(loading: Loading, folder: Path, declared: KeyPath) -> dict[str, str]:
    """Read the names of the project and its profile from dbt_project.yml."""
    file = folder / PROJECT_FILE
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        hint = "Name the folder of a dbt project."
        raise loading.refusal(declared, f"{file} does not exist", hint) from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        message = f"{file} cannot be read: {_first_line(error)}"
        raise loading.refusal(declared, message, "Correct it.") from None
    if not isinstance(content, dict) or not isinstance(content.get("name"), str):
        raise loading.refusal(declared, f"{file} names no project", "Add name: to it.")
    name = content["name"]
    return {"name": name, "profile": str(content.get("profile") or name)}


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())


PROFILES = "profiles.yml"
THREADS = 4


def ensure_profile(project: DbtProject) -> Path:
    """Return the folder of profiles.yml; write one unless the user has their own."""
    if project.config.profiles_dir is not None:
        return project.site.root / project.config.profiles_dir
    file = project.state / PROFILES
    text = profile_text(project)
    if not file.is_file() or file.read_text(encoding="utf-8") != text:
        make_private_folder(file.parent)
        file.write_text(text, encoding="utf-8")
    return file.parent


def profile_text(project: DbtProject) -> str:
    """Return a profile for Spark Connect. Its address is in an environment variable."""
    threads = project.site.compute().cores or THREADS
    output = {
        "type": "spark",
        "method": "session",
        # Required by dbt-spark but unused: the session is already open.
        "host": "localhost",
        "schema": DEFAULT_SCHEMA,
        "threads": threads,
    }
    profile = {"target": project.target, "outputs": {project.target: output}}
    return yaml.safe_dump({project.profile: profile}, sort_keys=False)


def target_schema(project: DbtProject) -> str:
    """Return the target's schema, which dbt puts before the schemas of models."""
    if project.config.profiles_dir is None:
        return DEFAULT_SCHEMA
    file = ensure_profile(project) / PROFILES
    content = yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else None
    profile = (content or {}).get(project.profile) or {}
    output = (profile.get("outputs") or {}).get(project.target) or {}
    return _rendered(str(output.get("schema") or DEFAULT_SCHEMA))


def _rendered(value: str) -> str:
    """Resolve `{{ env_var(…) }}` as dbt does when it reads a profile."""
    if "{{" not in value:
        return value
    from dbt.config.renderer import ProfileRenderer

    return str(ProfileRenderer({}).render_value(value))
