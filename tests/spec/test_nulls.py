"""Every key of floe.yaml and platform.yaml is absent if its value is null."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from floe.settings import ProjectPaths
from floe.spec import load_platform, load_project, validate_project
from floe.spec.json_schema import platform_schema, project_schema
from floe.spec.loader import Validation

Path_ = tuple[str, ...]
Key = tuple[Path_, dict[str, Any], str]
"""The path of a mapping, a valid mapping there, and one of its keys."""
ENVIRON = {"A": "1"}


class Keys:
    """Every key of a JSON schema, each in a mapping with all required keys."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._definitions = schema.get("$defs", {})
        self.found = list(self._walk(schema, (), ()))

    def _walk(self, node: dict[str, Any], path: Path_, seen: Path_) -> Iterator[Key]:
        for option in self._variants(node):
            name = option.get("title", "")
            if name and name in seen:
                continue
            base = self._required(option)
            for key, value in option.get("properties", {}).items():
                yield path, base, key
                yield from self._walk(value, (*path, key), (*seen, name))
            for below, step in (("additionalProperties", "NAME"), ("items", "[]")):
                if isinstance(option.get(below), dict):
                    yield from self._walk(option[below], (*path, step), seen)

    def _variants(self, node: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if "$ref" in node:
            yield from self._variants(self._definitions[node["$ref"].rpartition("/")[2]])
            return
        options = [*node.get("anyOf", ()), *node.get("oneOf", ())]
        for option in options:
            yield from self._variants(option)
        if not options:
            yield node

    def _required(self, option: dict[str, Any]) -> dict[str, Any]:
        wanted = option.get("required", ())
        return {key: self._value(option["properties"][key]) for key in wanted}

    def _value(self, node: dict[str, Any]) -> Any:
        option = next(self._variants(node))
        if "const" in option:
            return option["const"]
        known = option.get("enum") or option.get("examples")
        if known:
            return known[0]
        kinds = {"array": [], "integer": 1, "number": 1, "boolean": True}
        kinds["object"] = self._required(option)
        return kinds.get(option.get("type", "string"), "x")


def nested(path: Path_, value: Any) -> Any:
    """Put a value at a path; names and list items on the way are invented."""
    for step in reversed(path):
        value = [value] if step == "[]" else {"a.b" if step == "NAME" else step: value}
    return value


def documents(schema: dict[str, Any]) -> list[Any]:
    cases: dict[str, Any] = {}
    for path, base, key in Keys(schema).found:
        with_null, without = {**base, key: None}, {k: v for k, v in base.items() if k != key}
        label = ".".join((*path, key))
        kind = base.get("type") or base.get("kind") or ""
        case = (nested(path, with_null), nested(path, without))
        cases.setdefault(f"{label} {kind}".strip(), case)
    return [pytest.param(*case, id=name) for name, case in cases.items()]


def validated(folder: Path, tree: Any, file: str) -> Validation:
    folder.mkdir()
    (folder / "floe.yaml").write_text("name: x\n")
    (folder / file).write_text(json.dumps(tree))
    return validate_project(ProjectPaths(folder), ENVIRON)


def messages(validation: Validation) -> set[tuple[str, str]]:
    return {(finding.key, finding.message) for finding in validation.findings}


@pytest.mark.parametrize(("with_null", "without"), documents(project_schema()))
def test_null_is_absent_in_floe_yaml(tmp_path: Path, with_null: Any, without: Any) -> None:
    named = {} if "name" in with_null else {"name": "x"}
    first = validated(tmp_path / "a", {**named, **with_null}, "floe.yaml")
    second = validated(tmp_path / "b", {**named, **without}, "floe.yaml")
    assert messages(first) == messages(second)
    assert first.spec == second.spec
    if not first.findings:
        paths = ProjectPaths(tmp_path / "a")
        assert load_project(paths, ENVIRON).spec == first.spec


@pytest.mark.parametrize(("with_null", "without"), documents(platform_schema()))
def test_null_is_absent_in_platform_yaml(tmp_path: Path, with_null: Any, without: Any) -> None:
    first = validated(tmp_path / "a", with_null, "platform.yaml")
    second = validated(tmp_path / "b", without, "platform.yaml")
    assert messages(first) == messages(second)
    if not first.findings:
        loaded = [load_platform(ProjectPaths(tmp_path / name), ENVIRON) for name in "ab"]
        assert loaded[0] == loaded[1]


def test_a_required_key_that_is_null_is_missing(tmp_path: Path) -> None:
    tree = {"name": None, "orchestration": {"schedules": {"s": {"job": None}}}}
    validation = validated(tmp_path / "a", tree, "floe.yaml")
    assert messages(validation) == {
        ("name", "is missing"),
        ("orchestration.schedules.s.job", "is missing"),
        ("orchestration.schedules.s.cron_schedule", "is missing"),
    }


def test_null_items_of_lists_are_dropped_and_lines_stay_correct(tmp_path: Path) -> None:
    (tmp_path / "floe.yaml").write_text(
        "name: x\n"
        "datasets:\n"
        "  a.b:\n"
        "    keys:\n"
        "      -\n"
        "      - id\n"
        "      -\n"
        "      - nope\n"
        "    schema:\n"
        "      - null\n"
        "      - {name: id, type: bigint}\n"
        "      - {name: at, type: moment}\n"
    )
    validation = validate_project(ProjectPaths(tmp_path), {})
    assert [(finding.line, finding.key) for finding in validation.findings] == [
        (8, "datasets.a.b.keys[3]"),
        (12, "datasets.a.b.schema[2].type"),
    ]
    assert validation.spec.datasets["a.b"].keys == ("id", "nope")
