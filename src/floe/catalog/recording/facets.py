"""Decode the facets that the catalog reads into typed structs, leniently.

Clients send facets that do not follow their schema, and an event is worth storing without them. So
decoding never fails: a list entry or an optional field of the wrong type is left out with a note,
and the rest counts. The event itself keeps every byte.
"""

import types
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import DecodeError, Struct, ValidationError
from msgspec import field as msgspec_field

from floe.catalog.column_lineage import ALL_COLUMNS, DIRECT
from floe.catalog.schemas import Column

MAX_COLUMN_NAME, MAX_TYPE, MAX_KIND = 200, 1000, 20
ONLY_DIRECT = (DIRECT,)
KINDS = {
    ("DIRECT", "AGGREGATION"): "AGGREGATE",
    ("INDIRECT", "AGGREGATION"): "AGGREGATE",
    ("INDIRECT", "GROUP_BY"): "AGGREGATE",
}


# A source of a column: namespace, dataset and column of the source, the target column, the kind.
ColumnSource = tuple[str, str, str, str, str]


def read_object(raw: bytes | str) -> dict[str, Any]:
    """Decode a JSON object; return an empty one for anything else."""
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
    """A column of a schema facet; further keys are ignored."""

    name: str
    type: str | None = None
    description: str | None = None


class Schema(Struct, gc=False):
    """The schema facet."""

    fields: list[SchemaField] = []


def read_schema(raw: bytes) -> list[Column]:
    """Decode the columns of a schema facet; nested fields become column metadata."""
    try:
        schema = _schema.decode(raw)
    except (DecodeError, RecursionError, UnicodeDecodeError):
        # A column has extra keys, or a value is invalid.
        return _read_schema_leniently(raw)
    return [
        Column(
            field.name[:MAX_COLUMN_NAME],
            field.type[:MAX_TYPE] if field.type else "",
            metadata={"description": field.description} if field.description else None,
        )
        for field in schema.fields
    ]


def _read_schema_leniently(raw: bytes) -> list[Column]:
    fields = read_object(raw).get("fields")
    columns = []
    for field in fields if isinstance(fields, list) else ():
        name = field.pop("name", None) if isinstance(field, dict) else None
        if isinstance(name, str):
            kind = str(field.pop("type", None) or "")
            metadata = {key: value for key, value in field.items() if value} or None
            columns.append(Column(name[:MAX_COLUMN_NAME], kind[:MAX_TYPE], metadata=metadata))
    return columns


def metadata_text(column: Column) -> str | None:
    """Return a column's metadata as the JSON text that the catalog stores."""
    if not column.metadata:
        return None
    return _encoder.encode(column.metadata).decode()


class Transformation(Struct, gc=False):
    """How a column is derived from another."""

    type: str | None = None
    subtype: str | None = None


class SourceColumn(Struct, gc=False):
    """A column that another is derived from."""

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
    """Decode the column sources of a columnLineage facet, without duplicates."""
    facet = read_facet(raw, ColumnLineage)
    # A dictionary as an ordered set of plain tuples: there can be very many.
    sources: dict[ColumnSource, None] = {}
    for target, inputs in _targets(facet):
        column = target[:MAX_COLUMN_NAME]
        for source in inputs:
            if source.namespace and source.name and source.field:
                key = (source.namespace[:200], source.name[:300], source.field[:MAX_COLUMN_NAME])
                for kind in _kinds_of(source.transformations):
                    sources[*key, column, kind] = None
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
    return list(dict.fromkeys(_kind(each.type, each.subtype) for each in transformations))


def _kind(kind: str | None, subtype: str | None) -> str:
    known = KINDS.get((kind or "", subtype or ""))
    return known or (subtype[:MAX_KIND] if kind == "INDIRECT" and subtype else DIRECT)


Facet = TypeVar("Facet", bound=Struct)


class Note(NamedTuple):
    """A part of a facet that was left out, and why."""

    path: str
    message: str


Notes = Callable[[Note], None]


class _UnfitError(Exception):
    """A value has the wrong type and cannot be left out on its own."""

    def __init__(self, path: str, message: str) -> None:
        self.note = Note(path, message)
        super().__init__(f"{path}: {message}")


def _ignore_note(_: Note) -> None:
    """Ignore a note: notes are only shown to people who look at an event."""


def read_facet(raw: bytes | str, facet: type[Facet], note: Notes = _ignore_note) -> Facet:
    """Decode a facet whose fields all have defaults; report what was left out."""
    try:
        fitting: Facet = _decoder(facet).decode(raw)
    except (DecodeError, RecursionError, UnicodeDecodeError):
        return _read_leniently(raw, facet, note)
    return fitting


def fits(raw: bytes | str, facet: type[Struct]) -> bool:
    """Tell whether a facet matches its type completely."""
    try:
        _decoder(facet).decode(raw)
    except (DecodeError, RecursionError, UnicodeDecodeError):
        return False
    return True


@cache
def _decoder(facet: type[Facet]) -> "msgspec.json.Decoder[Facet]":
    return msgspec.json.Decoder(facet)


def _read_leniently(raw: bytes | str, facet: type[Facet], note: Notes) -> Facet:
    try:
        fitting: Facet = _fit(msgspec.json.decode(raw), facet, "", note)
    except _UnfitError as error:
        note(error.note)
    except (DecodeError, UnicodeDecodeError) as error:
        note(Note("", str(error)))
    except RecursionError:
        note(Note("", "is nested too deeply"))
    else:
        return fitting
    return facet()


def _fit(value: Any, wanted: Any, path: str, note: Notes) -> Any:
    """Convert a value to a type, without the parts of the wrong type."""
    try:
        return msgspec.convert(value, wanted)
    except ValidationError as error:
        reason = str(error)
    origin, arguments = get_origin(wanted), get_args(wanted)
    if origin is Annotated:
        return _fit_annotated(arguments[0], reason, value, path, note)
    if origin in (Union, types.UnionType):
        (inner,) = [argument for argument in arguments if argument is not type(None)]
        return _fit(value, inner, path, note)
    if origin is list and isinstance(value, list):
        return _fit_list(value, arguments[0], path, note)
    if origin is dict and isinstance(value, dict):
        return _fit_dict(value, arguments[1], path, note)
    if isinstance(wanted, type) and issubclass(wanted, Struct) and isinstance(value, dict):
        return _fit_struct(value, wanted, path, note)
    raise _UnfitError(path, reason)


def _fit_annotated(wanted: Any, reason: str, value: Any, path: str, note: Notes) -> Any:
    """Fit the parts of a value that has a length or range limit."""
    if get_origin(wanted) is None:
        raise _UnfitError(path, reason)
    return _fit(value, wanted, path, note)


def _fit_list(values: list[Any], wanted: Any, path: str, note: Notes) -> list[Any]:
    fitting = []
    for index, value in enumerate(values):
        try:
            fitting.append(_fit(value, wanted, f"{path}[{index}]", note))
        except _UnfitError as error:
            note(error.note)
    return fitting


def _fit_dict(values: dict[str, Any], wanted: Any, path: str, note: Notes) -> dict[str, Any]:
    fitting = {}
    for key, value in values.items():
        try:
            fitting[key] = _fit(value, wanted, f"{path}.{key}", note)
        except _UnfitError as error:
            note(error.note)
    return fitting


def _fit_struct(values: dict[str, Any], wanted: type[Struct], path: str, note: Notes) -> Struct:
    fitting = {}
    for field in msgspec.structs.fields(wanted):
        field_path = f"{path}.{field.encode_name}"
        if field.encode_name not in values:
            if field.required:
                raise _UnfitError(field_path, "is missing")
            continue
        try:
            fitting[field.name] = _fit(values[field.encode_name], field.type, field_path, note)
        except _UnfitError as error:
            if field.required:
                raise
            note(error.note)
    return wanted(**fitting)
