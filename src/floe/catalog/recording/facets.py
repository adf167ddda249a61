"""Read the facets that have rows of their own. What is not as it should be claims nothing."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import DecodeError, Struct
from msgspec import field as msgspec_field

from floe.catalog.column_edges import DIRECT
from floe.catalog.schemas import Column

LONGEST_COLUMN, LONGEST_TYPE, LONGEST_KIND = 200, 1000, 20
# What affects the whole dataset and not one column, such as a filter.
ALL_COLUMNS = "*"
ONLY_DIRECT = (DIRECT,)
KINDS = {
    ("DIRECT", "AGGREGATION"): "AGGREGATE",
    ("INDIRECT", "AGGREGATION"): "AGGREGATE",
    ("INDIRECT", "GROUP_BY"): "AGGREGATE",
}


# A column of another dataset that a column is made from: its dataset's namespace and name, the
# column, the one that is made, and how.
ColumnSource = tuple[str, str, str, str, str]


def read_object(raw: bytes | str) -> dict[str, Any]:
    """Read a JSON object; anything else is an empty one."""
    try:
        value = msgspec.json.decode(raw)
    except (DecodeError, RecursionError, UnicodeDecodeError):
        return {}
    return value if isinstance(value, dict) else {}


class _Field(Struct, gc=False, forbid_unknown_fields=True):
    name: str
    type: str | None = None
    description: str | None = None


class _Schema(Struct, gc=False):
    fields: list[_Field]


def read_schema(raw: bytes) -> list[Column]:
    """Read the columns of a schema facet; nested ones stay in their column's metadata."""
    try:
        schema = _schema.decode(raw)
    except (DecodeError, RecursionError, UnicodeDecodeError):
        # There is more to some column, or something is not as it should be.
        return _read_schema_one_by_one(raw)
    return [
        Column(
            field.name[:LONGEST_COLUMN],
            field.type[:LONGEST_TYPE] if field.type else "",
            metadata={"description": field.description} if field.description else None,
        )
        for field in schema.fields
    ]


def _read_schema_one_by_one(raw: bytes) -> list[Column]:
    fields = read_object(raw).get("fields")
    columns = []
    for field in fields if isinstance(fields, list) else ():
        name = field.pop("name", None) if isinstance(field, dict) else None
        if isinstance(name, str):
            kind = str(field.pop("type", None) or "")
            metadata = {key: value for key, value in field.items() if value} or None
            columns.append(Column(name[:LONGEST_COLUMN], kind[:LONGEST_TYPE], metadata=metadata))
    return columns


def metadata_text(column: Column) -> str | None:
    """A column's metadata as the catalog stores it."""
    if not column.metadata:
        return None
    return _encoder.encode(column.metadata).decode()


class _Transformation(Struct, gc=False):
    type: str = ""
    subtype: str = ""


class _Source(Struct, gc=False):
    namespace: str
    name: str
    field: str
    transformations: list[_Transformation] = []


class _Target(Struct, gc=False):
    inputs: list[_Source] = msgspec_field(name="inputFields")


class _ColumnLineage(Struct, gc=False):
    fields: dict[str, _Target]
    dataset: list[_Source] = []


_schema = msgspec.json.Decoder(_Schema)
_lineage = msgspec.json.Decoder(_ColumnLineage)
_encoder = msgspec.json.Encoder(order="sorted")


def read_columns(raw: bytes) -> list[ColumnSource]:
    """Read where columns come from, of a columnLineage facet."""
    try:
        facet = _lineage.decode(raw)
    except (DecodeError, RecursionError, UnicodeDecodeError):
        # Something in it is not as it should be; the rest may be.
        return _read_columns_one_by_one(raw)
    # A dictionary, because it keeps the order and each one once. Plain, because there are many.
    sources: dict[ColumnSource, None] = {}
    for target, inputs in _targets(facet):
        made = target[:LONGEST_COLUMN]
        for one in inputs:
            if one.namespace and one.name and one.field:
                read = (one.namespace[:200], one.name[:300], one.field[:LONGEST_COLUMN])
                for kind in _kinds_of(one.transformations):
                    sources[*read, made, kind] = None
    return list(sources)


def _targets(facet: _ColumnLineage) -> Iterator[tuple[str, list[_Source]]]:
    for target, entry in facet.fields.items():
        yield target, entry.inputs
    yield ALL_COLUMNS, facet.dataset


def _kinds_of(transformations: list[_Transformation]) -> Sequence[str]:
    if not transformations:
        return ONLY_DIRECT
    if len(transformations) == 1:
        return (_kind(transformations[0].type, transformations[0].subtype),)
    return list(dict.fromkeys(_kind(one.type, one.subtype) for one in transformations))


def _kind(kind: str, subtype: str) -> str:
    known = KINDS.get((kind, subtype))
    return known or (subtype[:LONGEST_KIND] if kind == "INDIRECT" and subtype else DIRECT)


def _read_columns_one_by_one(raw: bytes) -> list[ColumnSource]:
    facet = read_object(raw)
    fields = facet.get("fields")
    sources: list[ColumnSource] = []
    for target, entry in fields.items() if isinstance(fields, dict) else ():
        inputs = entry.get("inputFields") if isinstance(entry, dict) else None
        sources += _sources(inputs, str(target))
    sources += _sources(facet.get("dataset"), ALL_COLUMNS)
    return list(dict.fromkeys(sources))


def _sources(inputs: Any, target: str) -> Iterator[ColumnSource]:
    for one in inputs if isinstance(inputs, list) else ():
        if not isinstance(one, dict):
            continue
        namespace, name, column = (
            str(one.get(key) or "") for key in ("namespace", "name", "field")
        )
        if namespace and name and column:
            for kind in _kinds(one.get("transformations")):
                read = (namespace[:200], name[:300], column[:LONGEST_COLUMN])
                yield (*read, target[:LONGEST_COLUMN], kind)


def _kinds(transformations: Any) -> list[str]:
    listed = transformations if isinstance(transformations, list) else ()
    found = [
        _kind(str(one.get("type") or ""), str(one.get("subtype") or ""))
        for one in listed
        if isinstance(one, dict)
    ]
    return list(dict.fromkeys(found)) or [DIRECT]
