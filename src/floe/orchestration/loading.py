"""What every builder stands on: the project on its platform, and where its keys stand."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from floe.errors import FloeError
from floe.execution.site import Site
from floe.settings import ProjectPaths, find_project, platform_file
from floe.spec import load_platform
from floe.spec.compiler import (
    compile_project,
    find_stale,
    is_current,
    load_compiled,
    write_compiled,
)
from floe.spec.document import Located, locate, shown
from floe.spec.findings import Finding, KeyPath, Problem, SpecError
from floe.spec.loader import read_project
from floe.spec.rules import Draft, check_profiles

PRODUCTION = "production"


class StaleProjectError(FloeError):
    """The compiled file is not what the sources say, and production takes no surprises."""

    def __init__(self, path: Path, because: str) -> None:
        super().__init__(f"{path} {because}. Run: floe compile.")


@dataclass(frozen=True)
class Loading:
    """A project that is being turned into definitions."""

    site: Site
    document: Located

    def finding(
        self, path: KeyPath, message: str, hint: str = "", *, at_key: bool = False
    ) -> Finding:
        """Say what is wrong at a key, with the file and line where it stands.

        With `at_key` the key itself is wrong, such as a pattern, rather than its value.
        """
        return locate(self._written, Problem(path, message, hint, at_key=at_key))

    def refusal(
        self, path: KeyPath, message: str, hint: str = "", *, at_key: bool = False
    ) -> SpecError:
        """Return the error that stops the load, for a mistake at one key."""
        return SpecError([self.finding(path, message, hint, at_key=at_key)])

    @cached_property
    def _written(self) -> Located:
        """The sources, which know more lines than the compiled file; read when one is asked for."""
        if not self.site.paths.floe_yaml.is_file():
            return self.document
        written = read_project(self.site.paths)
        return written if written.is_readable else self.document


def load(path: Path | None = None, environ: Mapping[str, str] | None = None) -> Loading:
    """Load a project from its compiled file.

    The path is that of the file or of the project's folder; without one the project is found as
    commands find it. A file that is missing or stale is compiled anew, except in production.
    """
    environ = dict(os.environ if environ is None else environ)
    paths = _paths(path, environ)
    platform = load_platform(paths, environ)
    _refresh(paths, platform.environment, environ)
    loaded = load_compiled(paths.compiled, environ, paths.root)
    loading = Loading(Site(paths, loaded.spec, platform, environ), loaded.document)
    _check_platform(loading)
    return loading


def _paths(path: Path | None, environ: Mapping[str, str]) -> ProjectPaths:
    if path is not None and path.suffix == ".json":
        return ProjectPaths(path.resolve().parent.parent)
    return find_project(path, environ)


def _refresh(paths: ProjectPaths, environment: str, environ: Mapping[str, str]) -> None:
    if paths.compiled.is_file() and not paths.floe_yaml.is_file():
        return  # deployed without its sources: there is nothing it could be older than
    if is_current(paths):
        return
    stale = find_stale(paths, environ)
    if not stale.is_stale:
        return
    if environment == PRODUCTION:
        because = "does not exist" if stale.missing else f"is older than {stale.sources[0]}"
        raise StaleProjectError(paths.compiled, because)
    from floe.execution.declared_sql import validate_with_sql

    write_compiled(paths, compile_project(paths, environ, validate_with_sql))


def _check_platform(loading: Loading) -> None:
    """Refuse a project that asks for what the platform does not offer.

    The platform may have changed since the project was compiled, or be another one.
    """
    site = loading.site
    file = platform_file(site.paths, site.environ)
    if file is None:
        return
    draft = Draft(site.spec, loading.document.tree, site.root)
    problems = check_profiles(draft, site.platform, shown(site.root, file))
    findings = [loading.finding(one.path, one.message, one.hint) for one in problems]
    if findings:
        raise SpecError(findings)
