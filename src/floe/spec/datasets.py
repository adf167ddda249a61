"""Datasets: named data that processes read and write."""

from typing import Annotated, Literal

from pydantic import Field

from floe.spec.base import SpecModel
from floe.spec.checks import AnyCheck
from floe.spec.formats import DEFAULT_FORMAT, Options, typed_options
from floe.spec.names import DatasetName, Email
from floe.spec.promises import DatasetSla, LegalHold, Owner, RetentionOrAge
from floe.spec.sql_types import ColumnType
from floe.spec.values import AnyValue, OneOrMany, Zone

Checksum = Literal["md5", "sha1", "sha256", "sha512", "crc32"]


class Column(SpecModel):
    """One column of a dataset's schema."""

    name: Annotated[str, Field(min_length=1)]
    """The name of the column."""
    type: ColumnType
    """Its type, as Spark SQL calls it: bigint, decimal(18,2), array<string>."""
    nullable: bool = True
    """Whether it may hold no value."""
    description: str = ""
    """What it means."""
    classification: str | None = None
    """How sensitive it is, in the words of `governance.classifications`."""
    width: Annotated[int, Field(ge=1)] | None = None
    """How many characters it takes in a fixed-width file."""
    format: str | None = None
    """How its dates or timestamps are written, when not as the rest of the file."""


class JsonManifest(SpecModel):
    """A JSON file beside the data that says what was delivered."""

    kind: Literal["json"]
    """`json`"""
    path: str | None = None
    """Where it is; by default manifest.json in the folder of the data."""
    files: bool = True
    """Whether it lists the files, which must all be there."""
    rows: bool = True
    """Whether it gives row counts, which must be right."""
    checksum: Checksum | None = None
    """The checksum it gives for each file."""


class TrailerManifest(SpecModel):
    """The last line of each file says how many rows came before it."""

    kind: Literal["trailer"]
    """`trailer`"""
    prefix: Annotated[str, Field(min_length=1)] = "T"
    """What the trailer line begins with."""
    delimiter: str | None = None
    """What stands between its fields; by default that of the file."""
    rows_field: Annotated[int, Field(ge=1)] = 2
    """Which field is the row count, counted from 1."""
    checksum_field: Annotated[int, Field(ge=1)] | None = None
    """Which field is the checksum of the lines before."""
    checksum: Checksum | None = None
    """The kind of that checksum."""


class ControlManifest(SpecModel):
    """A control file of `name value` lines beside the data."""

    kind: Literal["control"]
    """`control`"""
    path: str
    """Where it is, such as landing/{business_date}/fx.ctl."""
    delimiter: str = "="
    """What stands between a name and its value."""
    rows: str = "rows"
    """The name whose value is the row count; "" when the file has none."""
    checksum_name: str | None = None
    """The name whose value is the checksum."""
    checksum: Checksum | None = None
    """The kind of that checksum."""


Manifest = Annotated[JsonManifest | TrailerManifest | ControlManifest, Field(discriminator="kind")]


class Consumer(SpecModel):
    """Someone outside who takes a feed."""

    name: str
    """The system or the firm."""
    email: Email | None = None
    """Where to write to."""
    notify: OneOrMany = ()
    """The notification channels that tell them of a new version."""


class Feed(SpecModel):
    """The dataset is delivered to others, at a place that stays the same."""

    latest: str
    """The stable location of the newest version."""
    consumers: tuple[Consumer, ...] = ()
    """Who takes it."""


class DatasetAlias(SpecModel):
    """Another name of the dataset, as a lineage client reports it."""

    namespace: str
    """The OpenLineage namespace, such as s3://bucket."""
    name: str
    """The OpenLineage name, such as exposure/daily."""


class DatasetSpec(SpecModel):
    """Named data: where it lives, who owns it, what it promises and what is checked."""

    description: str = ""
    """What the data is."""
    owner: Owner | None = None
    """Who answers for it."""
    category: str | None = None
    """The subject it belongs to, for search."""
    tags: tuple[str, ...] = ()
    """Words to find it by."""
    classification: str | None = None
    """How sensitive it is, in the words of `governance.classifications`."""
    format: str = DEFAULT_FORMAT
    """iceberg, parquet, csv, fixed_width, jdbc, files, or one of your own."""
    location: str | None = None
    """Where its files are. {business_date}, {partition} and {version} stand for the version's."""
    storage: str | None = None
    """The storage profile of platform.yaml, when not that of the project."""
    options: dict[str, AnyValue] = Field(default_factory=dict)
    """How the format is read and written."""
    manifest: Manifest | None = None
    """What tells that a delivery is complete and right; it is verified before a row is read."""
    columns: tuple[Column, ...] = Field(default=(), alias="schema")
    """Its columns; a declared schema is a contract that is enforced at write."""
    keys: tuple[str, ...] = ()
    """The columns that identify a row; `write: merge` goes by them."""
    partition_column: str | None = None
    """The column that holds the partition of a row."""
    partitions: str | None = None
    """The partition definition of `orchestration.partitions` that its versions follow."""
    timezone: Zone | None = None
    """The zone of its business dates, when not that of the project."""
    sla: DatasetSla | None = None
    """When a version is promised."""
    checks: tuple[AnyCheck, ...] = ()
    """What must hold before anyone reads a version."""
    retention: RetentionOrAge | None = None
    """How long superseded versions are kept."""
    legal_hold: LegalHold | None = None
    """Why nothing of it may be removed."""
    writers: Literal["one", "many"] = "one"
    """Whether several processes may write it."""
    feed: Feed | None = None
    """How it is delivered to others."""
    aliases: tuple[DatasetAlias, ...] = ()
    """Other names that lineage clients use for it."""
    renamed_from: DatasetName | None = None
    """What it was called before; its history moves along."""

    @property
    def format_options(self) -> Options | dict[str, AnyValue]:
        """The options as the model of the format, with its defaults."""
        return typed_options(self.format, self.options)

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)
