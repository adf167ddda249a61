"""Load and validate floe.yaml and platform.yaml; report all findings at once."""

import gc
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from floe.errors import FloeError
from floe.settings import ProjectPaths, platform_file
from floe.spec.document import Document, LocatedTree, locate, read_document, read_yaml
from floe.spec.findings import Finding, KeyPath, Problem, SpecError, sort_findings
from floe.spec.includes import expand_includes
from floe.spec.nearby import suggest
from floe.spec.platform import CatalogDatabase, PlatformSpec
from floe.spec.project import SECTIONS, ProjectSpec
from floe.spec.rules import Draft, check_platform, check_profiles, check_project
from floe.spec.validation import ValidatedDocument, validate_document
from floe.spec.variables import substitute
from floe.spec.yaml_tree import Tree


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector while a project is read and validated.

    A large project creates a million objects, none of them garbage. Scanning them again and
    again would take longer than the work itself.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            _age_survivors()
            gc.enable()


def _age_survivors() -> None:
    """Move all objects to the oldest generation, which is collected rarely.

    freeze() and unfreeze() are the only way to do that. Skipped if something else has frozen
    objects, because unfreeze() would release those too.
    """
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()


PENDING_KEYS = {
    "floe.yaml": (
        "datasets.*.sla",
        "datasets.*.feed.consumers",
        "datasets.*.owner.steward",
        "processes.*.sla",
        "processes.*.owner.steward",
        "governance.approval",
        "governance.default_owner.steward",
        "observability.notify",
    ),
    "platform.yaml": (
        "api.oidc",
        "catalog.*.retention",
    ),
}
"""Keys that are accepted but not enforced yet, with everything below them; `*` is any name."""


def find_pending(document: LocatedTree, pending: Sequence[str]) -> list[Finding]:
    """Return a warning for each pending key that is used, at its first use."""
    warnings = []
    for key in pending:
        uses = list(_uses(document.tree, tuple(key.split(".")), ()))
        if uses:
            hint = "floe stores the value but does not act on it."
            if len(uses) > 1:
                hint += f" {key} is used {len(uses)} times."
            problem = Problem(uses[0], "not enforced yet", hint, at_key=True)
            warnings.append(locate(document, problem))
    return warnings


def _uses(tree: Tree, rest: tuple[str, ...], path: KeyPath) -> Iterator[KeyPath]:
    """Find the keys that match a path with wildcards."""
    if not rest:
        yield path
    elif isinstance(tree, dict):
        names = list(tree) if rest[0] == "*" else [rest[0]]
        for name in names:
            if tree.get(name) is not None:
                yield from _uses(tree[name], rest[1:], (*path, name))


Environ = Mapping[str, str]


@dataclass(frozen=True)
class LoadedProject:
    """A valid project."""

    paths: ProjectPaths
    spec: ProjectSpec
    document: LocatedTree
    """The document it was read from, with the file and line of every key."""


@dataclass(frozen=True)
class Validation:
    """The result of validating a project: document, valid part, findings and warnings."""

    document: Document
    spec: ProjectSpec
    findings: tuple[Finding, ...]
    warnings: tuple[Finding, ...] = ()
    """Uses of keys that floe accepts but does not enforce yet."""


@collector_paused()
def load_project(paths: ProjectPaths, environ: Environ | None = None) -> LoadedProject:
    """Load a project with the environment's variables; raise all findings at once."""
    document = read_project(paths)
    if not document.is_readable:
        raise SpecError(document.findings)
    spec = build_spec(document, paths.root, _environ(environ), document.findings)
    return LoadedProject(paths, spec, document)


def load_platform(paths: ProjectPaths, environ: Environ | None = None) -> PlatformSpec:
    """Load the platform file selected by the environment, or the embedded default."""
    file = platform_file(paths, _environ(environ))
    if file is None:
        return PlatformSpec()
    document = read_document(paths.root, file)
    validated = validate_document(PlatformSpec, document, _environ(environ))
    findings = [
        *document.findings,
        *validated.findings(),
        *validated.locate_problems(check_platform(validated.tree)),
    ]
    if findings:
        raise SpecError(findings)
    return validated.spec


@collector_paused()
def validate_project(paths: ProjectPaths, environ: Environ | None = None) -> Validation:
    """Validate a project and its platform files, using only the defaults of variables.

    So the result is the same on every machine. The environment is only used to find a
    platform file outside the project.
    """
    document = read_project(paths)
    validated = validate_document(ProjectSpec, document, environ=None)
    findings = list(document.findings)
    if document.is_readable:
        draft = Draft(validated.spec, validated.tree, paths.root)
        findings += validated.findings()
        findings += validated.locate_problems(check_project(draft))
    warnings = find_pending(document, PENDING_KEYS["floe.yaml"])
    for file in _platform_files(paths, _environ(environ)):
        platform = read_document(paths.root, file)
        findings += _validate_platform(validated, paths.root, platform)
        warnings += find_pending(platform, PENDING_KEYS["platform.yaml"])
    return Validation(document, validated.spec, sort_findings(findings), sort_findings(warnings))


def _validate_platform(
    project: ValidatedDocument[ProjectSpec], root: Path, document: Document
) -> list[Finding]:
    if not document.is_readable:
        return document.findings
    platform = validate_document(PlatformSpec, document, environ=None)
    draft = Draft(project.spec, project.tree, root)
    return [
        *document.findings,
        *platform.findings(),
        *platform.locate_problems(check_platform(platform.tree)),
        *project.locate_problems(check_profiles(draft, platform.spec, document.sources[0].name)),
    ]


def read_project(paths: ProjectPaths) -> Document:
    """Read floe.yaml with all files it includes."""
    document = read_document(paths.root, paths.floe_yaml)
    expand_includes(document, paths.root, SECTIONS)
    return document


def build_spec(
    document: LocatedTree, root: Path, environ: Environ, earlier: Iterable[Finding] = ()
) -> ProjectSpec:
    """Return the project that a document declares, or raise all findings."""
    validated = validate_document(ProjectSpec, document, environ)
    draft = Draft(validated.spec, validated.tree, root)
    findings = [*earlier, *validated.findings(), *validated.locate_problems(check_project(draft))]
    if findings:
        raise SpecError(findings)
    return validated.spec


def _platform_files(paths: ProjectPaths, environ: Environ) -> list[Path]:
    """Return every platform file, because floe.yaml must work in each environment."""
    files = set(paths.root.glob("platform.yaml")) | set(paths.root.glob("platform.*.yaml"))
    chosen = platform_file(paths, environ)
    return sorted(files | ({chosen} if chosen is not None else set()))


def _environ(environ: Environ | None) -> Environ:
    return os.environ if environ is None else environ


DEFAULT = "default"


class UnknownProfileError(FloeError):
    """A project names a profile that the platform does not have."""

    def __init__(self, kind: str, name: str, known: list[str]) -> None:
        hint = suggest(name, known, f"The platform has: {', '.join(known)}.")
        super().__init__(f"floe.yaml: {kind}: the platform has no profile '{name}'. {hint}")


def load_catalog_database(
    paths: ProjectPaths, platform: PlatformSpec, environ: Mapping[str, str]
) -> CatalogDatabase:
    """Return the catalog database of the profile that floe.yaml names."""
    tree = read_yaml(paths.floe_yaml, paths.floe_yaml.name).tree
    written = tree.get("catalog") if isinstance(tree, dict) else None
    name = substitute(str(written or DEFAULT), environ.get).text
    if name not in platform.catalog:
        raise UnknownProfileError("catalog", name, sorted(platform.catalog))
    return platform.catalog[name]
