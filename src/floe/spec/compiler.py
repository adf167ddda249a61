"""Compile a project: validate it without running it, and write the compiled file.

The compiled file contains the merged tree with variables unresolved, the hashes of its
sources, and the location of each variable, so that an invalid value at load is still
reported with its file and line. The same sources always give the same bytes.
"""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from floe.errors import FloeError
from floe.settings import ProjectPaths, make_private_folder
from floe.spec.checks import SqlCheck
from floe.spec.document import Document, FileLine, display_path, read_document
from floe.spec.findings import Finding, KeyPath, SpecError
from floe.spec.includes import included_files
from floe.spec.loader import (
    LoadedProject,
    Validation,
    build_spec,
    collector_paused,
    validate_project,
)
from floe.spec.project import SECTIONS, ProjectSpec
from floe.spec.sql import is_sql_file
from floe.spec.variables import value_at
from floe.spec.yaml_tree import NUMBER, Plain, Tree

FORMAT = 1
_RECOMPILE = "Run: floe compile."
_SEAL = re.compile(r'^  "hash": "([0-9a-f]{64})",\n', re.MULTILINE)
"""The line of a compiled file that contains the hash of all other lines."""


class CompiledFileError(FloeError):
    """The compiled file cannot be used."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} {reason}. {_RECOMPILE}")


@dataclass(frozen=True)
class Compiled:
    """A compiled project."""

    project: str
    hash: str
    sources: Mapping[str, str]
    """SHA-256 of each source, by path relative to the project."""
    text: str
    """The content of the compiled file."""
    warnings: tuple[Finding, ...] = ()
    """Uses of keys that floe does not enforce yet."""


@dataclass(frozen=True)
class Staleness:
    """How a compiled file differs from its current sources."""

    missing: bool = False
    sources: tuple[str, ...] = ()
    """Sources that were changed, added or removed."""

    @property
    def is_stale(self) -> bool:
        return self.missing or bool(self.sources)


@collector_paused()
def compile_project(
    paths: ProjectPaths,
    environ: Mapping[str, str] | None = None,
    validate: Callable[[ProjectPaths, Mapping[str, str] | None], Validation] = validate_project,
) -> Compiled:
    """Validate a project and compile it in memory; raise all findings at once.

    `validate` can add checks that need more than the spec, such as those of SQL.
    """
    validation = validate(paths, environ)
    if validation.findings:
        raise SpecError(validation.findings)
    document = validation.document
    sources = {source.name: source.sha256 for source in document.sources}
    for name in sorted(set(sql_files(validation.spec))):
        sources[name] = hashlib.sha256((paths.root / name).read_bytes()).hexdigest()
    body = _body(document, sources)
    digest = hashlib.sha256(dump_tree(body).encode()).hexdigest()
    text = dump_tree({**body, "hash": digest}) + "\n"
    return Compiled(validation.spec.name, digest, sources, text, validation.warnings)


def write_compiled(paths: ProjectPaths, compiled: Compiled) -> Path:
    """Write the compiled file atomically."""
    target = paths.compiled
    make_private_folder(target.parent)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(compiled.text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(target)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
    return target


@collector_paused()
def load_compiled(
    path: Path, environ: Mapping[str, str] | None = None, root: Path | None = None
) -> LoadedProject:
    """Load a project from its compiled file, with the environment's variables."""
    root = path.resolve().parent.parent if root is None else root
    document = _CompiledDocument.of(read_compiled(path))
    spec = build_spec(document, root, os.environ if environ is None else environ)
    return LoadedProject(ProjectPaths(root), spec, document)


def read_compiled(path: Path) -> dict[str, Any]:
    """Read a compiled file; raise if it is missing, invalid or of another format."""
    try:
        content = load_tree(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CompiledFileError(path, "does not exist") from None
    except (ValueError, RecursionError):
        raise CompiledFileError(path, "is not a compiled project") from None
    if not isinstance(content, dict) or "spec" not in content:
        raise CompiledFileError(path, "is not a compiled project")
    if content.get("format") != Plain(str(FORMAT)):
        raise CompiledFileError(path, "was compiled by another version of floe")
    return content


def is_current(paths: ProjectPaths) -> bool:
    """Return whether a compiled file and all of its sources are unchanged.

    Takes a tenth of the time of compiling. If it returns False, the file may still be up to
    date: `find_stale` compiles to find out.
    """
    try:
        text = paths.compiled.read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        return False
    seal = _SEAL.search(text)
    if seal is None:
        return False
    body = text[: seal.start()] + text[seal.end() :].removesuffix("\n")
    if hashlib.sha256(body.encode()).hexdigest() != seal[1]:
        return False
    content = json.loads(text)
    sources = {source["path"]: source["sha256"] for source in content["sources"]}
    return (
        content["format"] == FORMAT
        and all(_sha256(paths.root / name) == then for name, then in sources.items())
        and _includes_only(paths, sources.keys())
    )


def _includes_only(paths: ProjectPaths, sources: Collection[str]) -> bool:
    """Return whether an unchanged project still includes the same files."""
    main = display_path(paths.root, paths.floe_yaml)
    included = {name for name in sources if name != main and not is_sql_file(name)}
    if not included:
        return True  # every pattern matches a file, else validation would have failed
    document = read_document(paths.root, paths.floe_yaml)
    files = included_files(document, paths.root, SECTIONS)
    return {display_path(paths.root.resolve(), file) for file in files} == included


def _sha256(file: Path) -> str | None:
    """Return the hash of a file, or None if it no longer exists."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None


def find_stale(paths: ProjectPaths, environ: Mapping[str, str] | None = None) -> Staleness:
    """Compare the compiled file with its current sources."""
    if not paths.compiled.is_file():
        return Staleness(missing=True)
    now = compile_project(paths, environ)
    before = read_compiled(paths.compiled)
    if before.get("hash") == now.hash:
        return Staleness()
    then = {str(source["path"]): str(source["sha256"]) for source in before["sources"]}
    names = sorted({*then, *now.sources})
    changed = tuple(name for name in names if then.get(name) != now.sources.get(name))
    return Staleness(sources=changed or (str(paths.compiled.relative_to(paths.root)),))


def sql_files(spec: ProjectSpec) -> Iterator[str]:
    """Yield the SQL files that a project uses."""
    for process in spec.processes.values():
        texts = [process.sql, *process.statements, *(step.sql for step in process.steps)]
        yield from (text for text in texts if text is not None and is_sql_file(text))
    for dataset in spec.datasets.values():
        queries = [check.sql for check in dataset.checks if isinstance(check, SqlCheck)]
        queries += [str(dataset.options.get("query", ""))] if dataset.format == "jdbc" else []
        yield from (text for text in queries if is_sql_file(text))


def _body(document: Document, sources: Mapping[str, str]) -> dict[str, Tree]:
    return {
        "format": Plain(str(FORMAT)),
        "project": document.tree["name"],
        "sources": [{"path": name, "sha256": sources[name]} for name in sorted(sources)],
        "spec": document.tree,
        "where": list(_where(document)),
    }


def _where(document: Document) -> Iterator[dict[str, Tree]]:
    """Return the location of each named definition and each variable."""
    elements = ((*section, name) for section in SECTIONS for name in _names(document, section))
    for element in sorted(elements):
        yield _entry(document, element, at_key=True)
    for path in sorted(document.variables, key=str):
        quoted = not isinstance(value_at(document.tree, path), Plain)
        yield {**_entry(document, path), "variable": "quoted" if quoted else "plain"}


def _names(document: Document, section: tuple[str, ...]) -> Sequence[str]:
    names = value_at(document.tree, section)
    return list(names) if isinstance(names, dict) else []


def _entry(document: Document, path: KeyPath, at_key: bool = False) -> dict[str, Tree]:
    position = document.find_line(path, at_key)
    steps = [Plain(str(step)) if isinstance(step, int) else step for step in path]
    return {"path": steps, "file": position.file, "line": Plain(str(position.line))}


@dataclass(frozen=True)
class _CompiledDocument:
    """A tree read from a compiled file."""

    tree: dict[str, Tree]
    variables: tuple[KeyPath, ...]
    lines: Mapping[KeyPath, FileLine]
    incomplete: tuple[KeyPath, ...] = ()

    @classmethod
    def of(cls, content: dict[str, Any]) -> "_CompiledDocument":
        tree: dict[str, Tree] = content["spec"]
        variables = []
        lines = {}
        for entry in content["where"]:
            path = tuple(int(step) if isinstance(step, Plain) else step for step in entry["path"])
            lines[path] = FileLine(entry["file"], int(entry["line"]))
            if "variable" in entry:
                variables.append(path)
            if entry.get("variable") == "plain":
                _mark(tree, path)
        return cls(tree, tuple(variables), lines)

    def find_line(self, path: KeyPath, at_key: bool = False) -> FileLine:
        """Return the file and line of the nearest known parent."""
        lengths = range(len(path), 0, -1)
        known = (self.lines.get(path[:length]) for length in lengths)
        return next(filter(None, known), FileLine("floe.yaml", 1))


def _mark(tree: Tree, path: KeyPath) -> None:
    """Mark a variable as unquoted again."""
    parent = value_at(tree, path[:-1])
    parent[path[-1]] = Plain(parent[path[-1]])


def dump_tree(value: Tree, indent: int = 0) -> str:
    """Format a tree as indented JSON."""
    inner = "\n" + "  " * (indent + 1)
    outer = "\n" + "  " * indent
    if isinstance(value, dict) and value:
        items = (f"{_text(key)}: {dump_tree(value[key], indent + 1)}" for key in sorted(value))
        return "{" + inner + f",{inner}".join(items) + outer + "}"
    if isinstance(value, list) and value:
        items = (dump_tree(item, indent + 1) for item in value)
        return "[" + inner + f",{inner}".join(items) + outer + "]"
    if isinstance(value, Plain) and (value in ("true", "false") or NUMBER.fullmatch(value)):
        return str(value)
    return _text(value)


def load_tree(text: str) -> Any:
    """Parse the output of dump_tree."""
    return _marked(json.loads(text, parse_int=Plain, parse_float=Plain))


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _marked(value: Any) -> Any:
    if isinstance(value, bool):
        return Plain("true" if value else "false")
    if isinstance(value, dict):
        return {key: _marked(item) for key, item in value.items()}
    return [_marked(item) for item in value] if isinstance(value, list) else value
