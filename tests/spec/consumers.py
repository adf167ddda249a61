"""Find the keys of the spec's models that code reads, using the types mypy infers.

With types, `platform.api.host` counts for the host of the API and `channel.host` does not.
Code in `floe.spec` counts only where code outside reaches it, and never the rules: checking a
key is not acting on it.
"""

import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mypy import build
from mypy.modulefinder import BuildSource
from mypy.nodes import ClassDef, Decorator, Expression, FuncDef, MypyFile
from mypy.options import Options
from mypy.traverser import NameAndMemberCollector
from mypy.types import Instance, Type, TypeType, TypeVarType, UnionType, get_proper_type

from floe.spec.base import SpecModel
from floe.spec.loader import PENDING_KEYS
from floe.spec.platform import PlatformSpec
from floe.spec.project import ProjectSpec

SOURCE = Path(__file__).parents[2] / "src"
SPEC = "floe.spec"
RULES = "floe.spec.rules"
Key = tuple[str, str]
"""The full name of a model, and the name of its field."""


ROOTS: dict[str, type[SpecModel]] = {"floe.yaml": ProjectSpec, "platform.yaml": PlatformSpec}
EFFECTIVE_ELSEWHERE = {
    "catalog": "load_catalog_database reads it before the rest of floe.yaml is checked",
    "datasets.*.writers": "validation refuses a second writer",
    "governance.classifications": "validation refuses other words",
    "governance.require": "validation refuses datasets without these keys",
}
"""Keys with an effect although no code outside the spec reads their attribute."""
FOR_READERS = "description"
"""Descriptive text. Most of it is shown in Dagster and the catalog, the rest is unused."""


@dataclass(frozen=True)
class DeclaredKey:
    """A key of floe.yaml or platform.yaml."""

    path: str
    source: Key
    selects_model: bool
    """Whether it only selects the model: `kind` or `type`."""


def keys_of(model: type[SpecModel], path: tuple[str, ...] = ()) -> Iterator[DeclaredKey]:
    """Walk a model and its nested models; `*` in a path is any name."""
    for name, info in model.model_fields.items():
        here = (*path, info.alias or name)
        fixed = typing.get_origin(info.annotation) is typing.Literal
        selects = fixed and len(typing.get_args(info.annotation)) == 1
        yield DeclaredKey(".".join(here), (_declaring(model, name), name), selects)
        for inner, names in _models_in(info.annotation, ()):
            yield from keys_of(inner, (*here, *names))


def _models_in(
    annotation: Any, names: tuple[str, ...]
) -> Iterator[tuple[type[SpecModel], tuple[str, ...]]]:
    if isinstance(annotation, type) and issubclass(annotation, SpecModel):
        yield annotation, names
        return
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        yield from _models_in(inside[0], names)
    elif origin is dict:
        yield from _models_in(inside[1], (*names, "*"))
    elif origin in (tuple, typing.Union, types.UnionType):
        for part in inside:
            yield from _models_in(part, names)


def _declaring(model: type[SpecModel], name: str) -> str:
    """Return the full name of the class in which a field is declared."""
    bases = reversed(model.__mro__)
    base = next(base for base in bases if name in getattr(base, "__annotations__", {}))
    return f"{base.__module__}.{base.__qualname__}"


@dataclass
class _Body:
    """The attributes that a function reads, and the names it refers to."""

    keys: set[Key] = field(default_factory=set)
    refers_to: set[str] = field(default_factory=set)


def _bodies(file: MypyFile) -> Iterator[tuple[str, MypyFile | FuncDef]]:
    """Yield the functions and methods of a module by name, and the module itself."""
    yield file.fullname, file
    definitions = list(file.defs)
    for definition in definitions:
        if isinstance(definition, ClassDef):
            definitions += definition.defs.body
        function = definition.func if isinstance(definition, Decorator) else definition
        if isinstance(function, FuncDef):
            yield function.fullname, function


def _read_body(node: MypyFile | FuncDef, inferred: dict[Expression, Type]) -> _Body:
    collector = NameAndMemberCollector()
    node.accept(collector)
    body = _Body()
    body.refers_to = {expression.fullname for expression in collector.name_exprs}
    for expression in collector.member_exprs:
        body.refers_to.add(expression.fullname)
        for instance in _instances(inferred.get(expression.expr)):
            body.keys |= {
                (base.fullname, expression.name)
                for base in instance.type.mro
                if expression.name in base.names
            }
    body.refers_to |= {f"{owner}.{name}" for owner, name in body.keys}
    return body


def _instances(of: Type | None) -> Iterator[Instance]:
    proper = get_proper_type(of)
    if isinstance(proper, Instance):
        yield proper
    elif isinstance(proper, UnionType):
        for item in proper.items:
            yield from _instances(item)
    elif isinstance(proper, TypeVarType):
        yield from _instances(proper.upper_bound)
    elif isinstance(proper, TypeType):
        yield from _instances(proper.item)


def consumed_keys() -> set[Key]:
    """Return the keys that code outside the spec reads, directly or indirectly."""
    result = build.build(list(_sources()), _options())
    bodies = {
        name: _read_body(node, result.types)
        for module, file in result.files.items()
        if module.partition(".")[0] == "floe"
        for name, node in _bodies(file)
        # Outside the spec, all code counts; within it, only functions that are called from outside.
        if not (name == module and module.startswith(SPEC))
    }
    keys: set[Key] = set()
    waiting = [name for name in bodies if not name.startswith(SPEC)]
    seen = set(waiting)
    while waiting:
        body = bodies[waiting.pop()]
        keys |= body.keys
        for name in body.refers_to & bodies.keys() - seen:
            if name.startswith(SPEC) and not name.startswith(RULES):
                seen.add(name)
                waiting.append(name)
    return keys


def ignored_keys(consumed: set[Key] | None = None) -> list[str]:
    """Return the keys that no code acts on and that no list names."""
    consumed = consumed_keys() if consumed is None else consumed
    return [
        f"{file}: {key.path}"
        for file, model in ROOTS.items()
        for key in keys_of(model)
        if key.source not in consumed
        and not key.selects_model
        and key.path not in EFFECTIVE_ELSEWHERE
        and not key.path.endswith(FOR_READERS)
        and not _is_pending(key.path, PENDING_KEYS[file])
    ]


def _is_pending(path: str, pending: tuple[str, ...]) -> bool:
    return any(path == key or path.startswith(f"{key}.") for key in pending)


def _sources() -> Iterator[BuildSource]:
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        yield BuildSource(str(path), ".".join(parts).removesuffix(".__init__"))


def _options() -> Options:
    options = Options()
    options.follow_imports = "skip"  # types of other packages are not needed
    options.export_types = options.preserve_asts = options.check_untyped_defs = True
    options.incremental = False
    options.ignore_errors = options.ignore_missing_imports = True
    return options
