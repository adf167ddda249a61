"""Load floe.yaml and platform.yaml: read, resolve, validate, cross-check; all findings at once."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from floe.settings import ProjectPaths, platform_file
from floe.spec.collector import collector_paused
from floe.spec.document import Document, Located, read_document
from floe.spec.examine import Examination, examine
from floe.spec.findings import Finding, SpecError, sort_findings
from floe.spec.includes import expand_includes
from floe.spec.pending import PENDING_KEYS, find_pending
from floe.spec.platform import PlatformSpec
from floe.spec.project import SECTIONS, ProjectSpec
from floe.spec.rules import Draft, check_platform, check_profiles, check_project

Environ = Mapping[str, str]


@dataclass(frozen=True)
class LoadedProject:
    """A project whose declaration was found right."""

    paths: ProjectPaths
    spec: ProjectSpec
    document: Located
    """What it was read from: it knows the file and line of every key."""


@dataclass(frozen=True)
class Validation:
    """A project that was checked: what was read, what is right of it, and what is wrong."""

    document: Document
    spec: ProjectSpec
    findings: tuple[Finding, ...]
    warnings: tuple[Finding, ...] = ()
    """Uses of keys that floe accepts and does not enforce yet."""


@collector_paused()
def load_project(paths: ProjectPaths, environ: Environ | None = None) -> LoadedProject:
    """Load a project with the variables of the environment; raise all findings at once."""
    document = read_project(paths)
    if not document.is_readable:
        raise SpecError(document.findings)
    spec = spec_of(document, paths.root, _environ(environ), document.findings)
    return LoadedProject(paths, spec, document)


def load_platform(paths: ProjectPaths, environ: Environ | None = None) -> PlatformSpec:
    """Load the platform file that the environment selects, or the embedded default."""
    file = platform_file(paths, _environ(environ))
    if file is None:
        return PlatformSpec()
    document = read_document(paths.root, file)
    examination = examine(PlatformSpec, document, _environ(environ))
    findings = [
        *document.findings,
        *examination.findings(),
        *examination.judge(check_platform(examination.tree)),
    ]
    if findings:
        raise SpecError(findings)
    return examination.spec


@collector_paused()
def validate_project(paths: ProjectPaths, environ: Environ | None = None) -> Validation:
    """Check a project and its platform files by the defaults of their variables alone.

    So the answer is the same on every machine. The environment only says whether there
    is a platform file elsewhere to look at.
    """
    document = read_project(paths)
    examination = examine(ProjectSpec, document, environ=None)
    findings = list(document.findings)
    if document.is_readable:
        draft = Draft(examination.spec, examination.tree, paths.root)
        findings += examination.findings()
        findings += examination.judge(check_project(draft))
    warnings = find_pending(document, PENDING_KEYS["floe.yaml"])
    for file in _platform_files(paths, _environ(environ)):
        platform = read_document(paths.root, file)
        findings += _validate_platform(examination, paths.root, platform)
        warnings += find_pending(platform, PENDING_KEYS["platform.yaml"])
    return Validation(document, examination.spec, sort_findings(findings), sort_findings(warnings))


def _validate_platform(
    project: Examination[ProjectSpec], root: Path, document: Document
) -> list[Finding]:
    if not document.is_readable:
        return document.findings
    platform = examine(PlatformSpec, document, environ=None)
    draft = Draft(project.spec, project.tree, root)
    return [
        *document.findings,
        *platform.findings(),
        *platform.judge(check_platform(platform.tree)),
        *project.judge(check_profiles(draft, platform.spec, document.sources[0].name)),
    ]


def read_project(paths: ProjectPaths) -> Document:
    """Read floe.yaml with all that it includes."""
    document = read_document(paths.root, paths.floe_yaml)
    expand_includes(document, paths.root, SECTIONS)
    return document


def spec_of(
    document: Located, root: Path, environ: Environ, found: Iterable[Finding] = ()
) -> ProjectSpec:
    """Return the project that a document declares, or raise everything that is wrong with it."""
    examination = examine(ProjectSpec, document, environ)
    draft = Draft(examination.spec, examination.tree, root)
    findings = [*found, *examination.findings(), *examination.judge(check_project(draft))]
    if findings:
        raise SpecError(findings)
    return examination.spec


def _platform_files(paths: ProjectPaths, environ: Environ) -> list[Path]:
    """Every platform file of the project, since floe.yaml has to suit each environment."""
    files = set(paths.root.glob("platform.yaml")) | set(paths.root.glob("platform.*.yaml"))
    chosen = platform_file(paths, environ)
    return sorted(files | ({chosen} if chosen is not None else set()))


def _environ(environ: Environ | None) -> Environ:
    return os.environ if environ is None else environ
