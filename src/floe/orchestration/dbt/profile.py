"""The profile by which dbt reaches the platform's Spark. A user's own is left as it is."""

from pathlib import Path

import yaml

from floe.orchestration.dbt.project import DbtProject
from floe.settings import make_private_folder
from floe.spec.identity import DEFAULT_SCHEMA

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
    """Write a profile for a session on Spark Connect, whose address comes by the environment."""
    threads = project.site.compute().cores or THREADS
    output = {
        "type": "spark",
        "method": "session",
        # Asked for, and not used: the session is already open.
        "host": "localhost",
        "schema": DEFAULT_SCHEMA,
        "threads": threads,
    }
    profile = {"target": project.target, "outputs": {project.target: output}}
    return yaml.safe_dump({project.profile: profile}, sort_keys=False)


def target_schema(project: DbtProject) -> str:
    """Return the schema of the target: what dbt puts before the schemas of models."""
    if project.config.profiles_dir is None:
        return DEFAULT_SCHEMA
    file = ensure_profile(project) / PROFILES
    content = yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else None
    profile = (content or {}).get(project.profile) or {}
    output = (profile.get("outputs") or {}).get(project.target) or {}
    return _rendered(str(output.get("schema") or DEFAULT_SCHEMA))


def _rendered(value: str) -> str:
    """Let dbt resolve `{{ env_var(…) }}`, as it does when it reads a profile."""
    if "{{" not in value:
        return value
    from dbt.config.renderer import ProfileRenderer

    return str(ProfileRenderer({}).render_value(value))
