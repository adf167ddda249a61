"""The facets that the catalog reads, as typed structs, and what they say in its words."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import DecodeError, Struct
from msgspec import field as msgspec_field

from floe.catalog.column_edges import ALL_COLUMNS, DIRECT
from floe.catalog.recording.lenient import read_facet
from floe.catalog.schemas import Column

LONGEST_COLUMN, LONGEST_TYPE, LONGEST_KIND = 200, 1000, 20
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


class SchemaField(Struct, gc=False):
    """A column of a schema facet, which may have more to it."""

    name: str
    type: str | None = None
    description: str | None = None


class Schema(Struct, gc=False):
    """The schema facet."""

    fields: list[SchemaField] = []


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


class Transformation(Struct, gc=False):
    """How a column is made from another."""

    type: str | None = None
    subtype: str | None = None


class SourceColumn(Struct, gc=False):
    """A column that another is made from."""

    namespace: str
    name: str
    field: str
    transformations: list[Transformation] = []


class TargetColumn(Struct, gc=False):
    """The sources of a column."""

    inputs: list[SourceColumn] = msgspec_field(name="inputFields")


class ColumnLineage(Struct, gc=False):
    """The columnLineage facet."""

    fields: dict[str, TargetColumn] = {}
    dataset: list[SourceColumn] = []


class Owner(Struct, gc=False):
    """Who owns a dataset or job."""

    name: str


class Ownership(Struct, gc=False):
    """The ownership facet."""

    owners: list[Owner] = []


class Documentation(Struct, gc=False):
    """The documentation facet."""

    description: str = ""


class JobType(Struct, gc=False):
    """The jobType facet."""

    integration: str = ""
    job_type: str | None = msgspec_field(name="jobType", default=None)


class LifecycleStateChange(Struct, gc=False):
    """The lifecycleStateChange facet."""

    change: str = msgspec_field(name="lifecycleStateChange", default="")


_schema = msgspec.json.Decoder(_Schema)
_encoder = msgspec.json.Encoder(order="sorted")


def read_columns(raw: bytes) -> list[ColumnSource]:
    """Read where columns come from, of a columnLineage facet."""
    facet = read_facet(raw, ColumnLineage)
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


def _targets(facet: ColumnLineage) -> Iterator[tuple[str, list[SourceColumn]]]:
    for target, entry in facet.fields.items():
        yield target, entry.inputs
    yield ALL_COLUMNS, facet.dataset


def _kinds_of(transformations: list[Transformation]) -> Sequence[str]:
    if not transformations:
        return ONLY_DIRECT
    if len(transformations) == 1:
        return (_kind(transformations[0].type, transformations[0].subtype),)
    return list(dict.fromkeys(_kind(one.type, one.subtype) for one in transformations))


def _kind(kind: str | None, subtype: str | None) -> str:
    known = KINDS.get((kind or "", subtype or ""))
    return known or (subtype[:LONGEST_KIND] if kind == "INDIRECT" and subtype else DIRECT)
