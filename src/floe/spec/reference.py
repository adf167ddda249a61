"""Generate the reference pages and JSON Schemas of floe.yaml and platform.yaml.

Run `python -m floe.spec.reference docs/reference` after changing a model. The part of a page
above the marker is written by hand and kept.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from floe.spec.json_schema import Schema, platform_schema, project_schema

MARKER = "<!-- Below: generated from the models by python -m floe.spec.reference -->"
PAGES = {"floe-yaml": project_schema, "platform-yaml": platform_schema}
_PLAIN_WORDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "mapping",
    "array": "list",
}


def schema_text(schema: Schema) -> str:
    """Format a schema as in the checked-in file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def key_tables(schema: Schema) -> str:
    """Return a table of keys for every mapping in a file."""
    return "\n".join(_Tables(schema).lines())


class _Tables:
    """Walks a schema from its root and writes one section for each mapping."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._titles: dict[str, str] = {}

    def lines(self) -> Iterator[str]:
        waiting: list[tuple[str, Schema]] = [("", self._schema)]
        while waiting:
            path, mapping = waiting.pop(0)
            inner = [section for key in self._keys(mapping) for section in self._inside(path, *key)]
            yield from self._section(path, mapping)
            waiting[:0] = inner

    def _section(self, path: str, mapping: Schema) -> Iterator[str]:
        title = f"`{path}`" if path else "Top level"
        yield from (f"## {title}", "", mapping["description"], "")
        yield from ("| key | value | default | meaning |", "|---|---|---|---|")
        required = mapping.get("required", [])
        for name, schema in self._keys(mapping):
            default = "required" if name in required else _default(schema)
            meaning = _cell(schema.get("description", ""))
            yield f"| `{name}` | {_cell(self._kind(schema))} | {default} | {meaning} |"
        yield ""

    def _keys(self, mapping: Schema) -> list[tuple[str, Schema]]:
        return list(mapping["properties"].items())

    def _inside(self, path: str, name: str, schema: Schema) -> Iterator[tuple[str, Schema]]:
        """Yield the mappings in a key that have no section yet."""
        start = f"{path}.{name}" if path else name
        for suffix, reference in _references(schema):
            if reference in self._titles or reference == "Variable":
                continue
            mapping = self._schema["$defs"][reference]
            if "properties" not in mapping:
                continue
            tag = _tag(mapping)
            title = f"{start}{suffix}{f' ({tag})' if tag else ''}"
            self._titles[reference] = title
            yield title, mapping
        if name == "options" and path == "datasets.NAME":
            yield from self._formats(start)

    def _formats(self, start: str) -> Iterator[tuple[str, Schema]]:
        for case in self._schema["$defs"]["DatasetSpec"]["allOf"]:
            name = case["if"]["properties"]["format"]["const"]
            reference = case["then"]["properties"]["options"]["$ref"].rpartition("/")[2]
            yield f"{start} (format {name})", self._schema["$defs"][reference]

    def _kind(self, schema: Schema) -> str:
        """Describe the type of a key in a few words."""
        if "$ref" in schema:
            return self._named(schema["$ref"].rpartition("/")[2])
        if "enum" in schema or "const" in schema:
            words = schema.get("enum") or [schema["const"]]
            return " or ".join(f"`{word}`" for word in words)
        if "anyOf" in schema or "oneOf" in schema:
            arms = schema.get("anyOf") or schema["oneOf"]
            kinds = (self._kind(arm) for arm in arms if arm.get("type") != "null")
            return " or ".join(dict.fromkeys(kind for kind in kinds if kind))
        if "items" in schema:
            return f"list of {self._kind(schema['items'])}"
        if isinstance(schema.get("additionalProperties"), dict):
            return f"mapping of {self._kind(schema['additionalProperties'])}"
        return _PLAIN_WORDS.get(schema.get("type", ""), "anything")

    def _named(self, reference: str) -> str:
        if reference == "Variable":
            return ""
        title = self._titles[reference]
        words = title.partition("(")[2].removesuffix(")") or "mapping"
        return f"[{words}](#{_anchor(title)})"


def _references(schema: Schema, suffix: str = "") -> Iterator[tuple[str, str]]:
    if "$ref" in schema:
        yield suffix, schema["$ref"].rpartition("/")[2]
    for arm in [*schema.get("anyOf", []), *schema.get("oneOf", [])]:
        yield from _references(arm, suffix)
    if isinstance(schema.get("items"), dict):
        yield from _references(schema["items"], f"{suffix}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _references(schema["additionalProperties"], f"{suffix}.NAME")


def _tag(mapping: Schema) -> str:
    for key in ("type", "kind"):
        if "const" in mapping["properties"].get(key, {}):
            return f"{key} {mapping['properties'][key]['const']}"
    return ""


def _default(schema: Schema) -> str:
    default: Any = schema.get("default")
    if default in (None, "", [], {}):
        return ""
    return f"`{_cell(default if isinstance(default, str) else json.dumps(default))}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _anchor(title: str) -> str:
    kept = (letter for letter in title.lower() if letter.isalnum() or letter in " _-")
    return "".join(kept).replace(" ", "-")


def write_pages(folder: Path) -> None:
    """Write the schema files, and the part of each page below its marker."""
    for name, make in PAGES.items():
        schema = make()
        (folder / f"{name}.schema.json").write_text(schema_text(schema), encoding="utf-8")
        page = folder / f"{name}.md"
        above = page.read_text(encoding="utf-8").partition(MARKER)[0]
        page.write_text(f"{above}{MARKER}\n\n{key_tables(schema)}", encoding="utf-8")


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
