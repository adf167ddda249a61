"""The input and output of builders: the loaded project, and the definitions."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dagster import (
    AssetChecksDefinition,
    AssetKey,
    AssetsDefinition,
    AssetSpec,
    Definitions,
    PartitionsDefinition,
)

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
from floe.spec.document import LocatedTree, display_path, locate
from floe.spec.findings import Finding, KeyPath, Problem, SpecError
from floe.spec.loader import read_project
from floe.spec.rules import Draft, check_profiles

if TYPE_CHECKING:
    from dagster import ExecutorDefinition


PRODUCTION = "production"


class StaleProjectError(FloeError):
    """The compiled file is missing or older than its sources, in production."""

    def __init__(self, path: Path, because: str) -> None:
        super().__init__(f"{path} {because}. Run: floe compile.")


@dataclass(frozen=True)
class Loading:
    """A loaded project, with the positions of its keys for findings."""

    site: Site
    document: LocatedTree

    def finding(
        self, path: KeyPath, message: str, hint: str = "", *, at_key: bool = False
    ) -> Finding:
        """Return a finding at a key, with file and line.

        `at_key` means that the key itself is wrong (such as a pattern), not its value.
        """
        return locate(self._written, Problem(path, message, hint, at_key=at_key))

    def refusal(
        self, path: KeyPath, message: str, hint: str = "", *, at_key: bool = False
    ) -> SpecError:
        """Return the error that stops the load, for a mistake at one key."""
        return SpecError([self.finding(path, message, hint, at_key=at_key)])

    @cached_property
    def _written(self) -> LocatedTree:
        """The YAML sources: they have line numbers that the compiled file lacks."""
        if not self.site.paths.floe_yaml.is_file():
            return self.document
        written = read_project(self.site.paths)
        return written if written.is_readable else self.document


def load(path: Path | None = None, environ: Mapping[str, str] | None = None) -> Loading:
    """Load a project from its compiled file.

    `path` is that file or the project's folder; without it, the project is found as commands find
    it. A missing or stale file is compiled again, except in production.
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
        return  # deployed without sources, so it cannot be stale
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
    """Reject a project that uses something the platform does not have.

    The platform may have changed since the project was compiled, or be a different one.
    """
    site = loading.site
    file = platform_file(site.paths, site.environ)
    if file is None:
        return
    draft = Draft(site.spec, loading.document.tree, site.root)
    problems = check_profiles(draft, site.platform, display_path(site.root, file))
    findings = [
        loading.finding(problem.path, problem.message, problem.hint) for problem in problems
    ]
    if findings:
        raise SpecError(findings)


AnyPartitions = PartitionsDefinition[Any]


@dataclass(frozen=True)
class Parts:
    """The definitions built so far."""

    partitions: Mapping[str, AnyPartitions] = field(default_factory=dict)
    """Partition definitions by their name in floe.yaml."""
    assets: tuple[AssetsDefinition | AssetSpec, ...] = ()
    checks: tuple[AssetChecksDefinition, ...] = ()
    origins: Mapping[AssetKey, str] = field(default_factory=dict)
    """The file of each Python asset, relative to the project's folder."""
    jobs: Mapping[str, Any] = field(default_factory=dict)
    """Jobs by name."""
    schedules: tuple[Any, ...] = ()
    sensors: tuple[Any, ...] = ()
    resources: Mapping[str, Any] = field(default_factory=dict)
    executor: "ExecutorDefinition | None" = None

    @cached_property
    def specs(self) -> Mapping[AssetKey, AssetSpec]:
        """Every asset by its key."""
        specs: dict[AssetKey, AssetSpec] = {}
        for asset in self.assets:
            for spec in [asset] if isinstance(asset, AssetSpec) else asset.specs:
                specs[spec.key] = spec
        return specs

    @cached_property
    def executable(self) -> frozenset[AssetKey]:
        """The keys of the assets that this project computes; others are external."""
        definitions = (asset for asset in self.assets if isinstance(asset, AssetsDefinition))
        return frozenset(key for asset in definitions if asset.is_executable for key in asset.keys)

    def definitions(self) -> Definitions:
        """Return what Dagster loads."""
        return Definitions(
            assets=self.assets,
            asset_checks=self.checks,
            jobs=list(self.jobs.values()),
            schedules=self.schedules,
            sensors=self.sensors,
            resources=self.resources,
            executor=self.executor,
        )
