"""What `floe compile` does for dbt: parse the project, and check its manifest."""

from pathlib import Path

from floe.orchestration.dbt.manifest import make_manifest, read_manifest
from floe.orchestration.dbt.project import find_dbt
from floe.orchestration.loading import load
from floe.settings import ProjectPaths


def compile_dbt(paths: ProjectPaths) -> Path | None:
    """Make the manifest of a project's dbt project; return where it is, if it was made here."""
    loading = load(paths.root)
    project = find_dbt(loading)
    if project is None:
        return None
    if project.is_parsed_here:
        make_manifest(loading, project)
    read_manifest(loading, project)
    return project.manifest if project.is_parsed_here else None
