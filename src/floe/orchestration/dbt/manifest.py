"""The manifest: what dbt knows of its project. Made when it is missing, except in production."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from floe.orchestration.dbt.invoking import DbtFailedError, parse
from floe.orchestration.dbt.naming import name_datasets
from floe.orchestration.dbt.profile import ensure_profile
from floe.orchestration.dbt.project import DbtProject
from floe.orchestration.loading import PRODUCTION, Loading

Manifest = Mapping[str, Any]

SOURCES = (".sql", ".yml", ".yaml", ".csv", ".py", ".md")
NOT_SOURCES = ("target", "dbt_packages", "dbt_modules", "logs")
STAMP = "sources.sha256"
_COMPILE = "Run: floe compile."
NO_DATABASES = "Cannot set database in spark"
"""What dbt-spark says of a project that names databases; it does not say where."""


def load_manifest(loading: Loading, project: DbtProject) -> Manifest:
    """Return the manifest. One that is missing or stale is made, and in production refused."""
    if project.is_parsed_here:
        stale = _why_stale(project)
        if stale and loading.site.platform.environment == PRODUCTION:
            raise loading.refusal(project.declared, f"{_shown(project)} {stale}", _COMPILE)
        if stale:
            make_manifest(loading, project)
    return read_manifest(loading, project)


def make_manifest(loading: Loading, project: DbtProject) -> None:
    """Let dbt parse its project, and note what it was parsed from."""
    stamp = fingerprint(project)
    try:
        parse(project)
    except DbtFailedError as error:
        message = f"dbt cannot parse {project.shown(project.folder)}: {error.reason}"
        raise loading.refusal(project.declared, message, _hint(error.reason)) from error
    file = project.state / STAMP
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(stamp, encoding="utf-8")


def _hint(reason: str) -> str:
    if NO_DATABASES in reason:
        return (
            "Spark has no databases above schemas: remove 'database' (and 'target_database') from "
            "sources, models, seeds and snapshots. Which lake it is stands in platform.yaml."
        )
    return "Correct it there."


def fingerprint(project: DbtProject) -> str:
    """Return a hash of all that decides on the manifest."""
    digest = hashlib.sha256(repr((project.target, sorted(project.vars.items()))).encode())
    profiles = ensure_profile(project) / "profiles.yml"
    files = {str(path.relative_to(project.folder)): path for path in _sources(project.folder)}
    if profiles.is_file():
        files[""] = profiles
    for name in sorted(files):
        digest.update(name.encode())
        digest.update(files[name].read_bytes())
    return digest.hexdigest()


def _why_stale(project: DbtProject) -> str:
    if not project.manifest.is_file():
        return "does not exist"
    noted = project.state / STAMP
    if not noted.is_file() or noted.read_text(encoding="utf-8") != fingerprint(project):
        return "is not what the dbt project says now"
    return ""


def read_manifest(loading: Loading, project: DbtProject) -> Manifest:
    """Read the manifest as it is, or say what is wrong with it and what makes it."""
    where = (
        project.declared if project.is_parsed_here else ("orchestration", "dbt", "manifest_path")
    )
    makes = _COMPILE if project.is_parsed_here else "Run: dbt parse."
    try:
        content = msgspec.json.decode(project.manifest.read_bytes())
    except FileNotFoundError:
        raise loading.refusal(where, f"{_shown(project)} does not exist", makes) from None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"{_shown(project)} is not a dbt manifest: {error}"
        raise loading.refusal(where, message, makes) from None
    if not isinstance(content, dict) or not {"nodes", "sources", "metadata"} <= content.keys():
        message = f"{_shown(project)} is not a dbt manifest"
        raise loading.refusal(where, message, makes)
    return name_datasets(loading, project, content)


def _sources(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir():
            if path.name not in NOT_SOURCES and not path.name.startswith("."):
                yield from _sources(path)
        elif path.suffix in SOURCES:
            yield path


def _shown(project: DbtProject) -> str:
    return project.shown(project.manifest)
