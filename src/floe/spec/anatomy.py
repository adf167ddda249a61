"""Follow the location of a validation error through the models: which key, and of what.

Pydantic puts the tag of a union into a location, between the keys that the user wrote.
Walking the models along tells tags from keys, and knows which keys could stand there.
"""

from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, Tag

from floe.spec.findings import KeyPath

KEY = "[key]"
"""What pydantic appends when the key of a mapping, not its value, is wrong."""


@dataclass(frozen=True)
class Anatomy:
    """A location as the user knows it, and the model that its last key belongs to."""

    path: KeyPath
    owner: type[BaseModel] | None
    at_key: bool


def dissect(model: type[BaseModel], location: tuple[str | int, ...]) -> Anatomy:
    """Strip tags from a location and find the model that holds its last key."""
    path: list[str | int] = []
    here: Any = model
    owner: type[BaseModel] | None = None
    for step in location:
        if step == KEY:
            return Anatomy(tuple(path), None, at_key=True)
        here = _unwrapped(here)
        arm = _arm(here, step)
        if arm is not None:
            here = arm
            continue
        path.append(step)
        owner = here if _is_model(here) else None
        here = _inside(here, step)
    return Anatomy(tuple(path), owner, at_key=False)


def known_keys(model: type[BaseModel]) -> dict[str, str]:
    """Return the keys that a mapping of this model may hold, and the fields they fill."""
    return {field.alias or name: name for name, field in model.model_fields.items()}


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _unwrapped(kind: Any) -> Any:
    """Take off Annotated and `| None`."""
    while True:
        if get_origin(kind) is Annotated:
            kind = get_args(kind)[0]
            continue
        arms = _arms(kind)
        some = [arm for arm in arms if arm is not NoneType]
        if len(some) == 1 and len(arms) == 2:
            kind = some[0]
            continue
        return kind


def _arms(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else ()


def _arm(kind: Any, tag: str | int) -> Any:
    """Return the arm of a union that a tag stands for; None where there is no such union."""
    return next((arm for arm in _arms(kind) if tag in _tags(arm)), None)


def _tags(arm: Any) -> tuple[Any, ...]:
    named = tuple(meta.tag for meta in get_args(arm)[1:] if isinstance(meta, Tag))
    model = _unwrapped(arm)
    if named or not _is_model(model):
        return named
    for name in ("type", "kind"):
        field = model.model_fields.get(name)
        if field is not None and get_origin(field.annotation) is Literal:
            return get_args(field.annotation)
    return ()


def _inside(kind: Any, step: str | int) -> Any:
    if _is_model(kind):
        field = kind.model_fields.get(known_keys(kind).get(str(step), ""))
        return field.annotation if field is not None else None
    arguments = get_args(kind)
    if get_origin(kind) is dict:
        return arguments[1]
    return arguments[0] if get_origin(kind) in (tuple, list) else None
