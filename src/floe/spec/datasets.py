"""Datasets: named data that processes read and write."""

from typing import Annotated, Literal

from pydantic import Field

from floe.spec.base import SpecModel
from floe.spec.checks import AnyCheck
from floe.spec.formats import DEFAULT_FORMAT, Options, typed_options
from floe.spec.governance import DatasetSla, LegalHold, Owner, RetentionOrAge
from floe.spec.names import DatasetName, Email
from floe.spec.sql import ColumnType
from floe.spec.values import AnyValue, OneOrMany, Zone

Checksum = Literal["md5", "sha1", "sha256", "sha512", "crc32"]


class Column(SpecModel):
    """One column of a dataset's schema."""

    name: Annotated[str, Field(min_length=1)]
    """The name of the column."""
    type: ColumnType
    """A Spark SQL type, such as bigint, decimal(18,2) or array<string>."""
    nullable: bool = True
    """Whether the column may be null."""
    description: str = ""
    """What the column means."""
    classification: str | None = None
    """Sensitivity: one of `governance.classifications`."""
    width: Annotated[int, Field(ge=1)] | None = None
    """Number of characters in a fixed-width file."""
    format: str | None = None
    """Date or timestamp format, if it differs from the rest of the file."""


class JsonManifest(SpecModel):
    """A JSON file next to the data that describes the delivery."""

    kind: Literal["json"]
    """`json`"""
    path: str | None = None
    """Path of the manifest; by default manifest.json in the data folder."""
    files: bool = True
    """Whether it lists the files; every listed file must exist."""
    rows: bool = True
    """Whether it gives row counts; they must match the data."""
    checksum: Checksum | None = None
    """Checksum algorithm, if it gives a checksum for each file."""


class TrailerManifest(SpecModel):
    """The last line of each file gives its row count."""

    kind: Literal["trailer"]
    """`trailer`"""
    prefix: Annotated[str, Field(min_length=1)] = "T"
    """Prefix of the trailer line."""
    delimiter: str | None = None
    """Delimiter of the trailer's fields; by default that of the file."""
    rows_field: Annotated[int, Field(ge=1)] = 2
    """Position of the row count among the fields, starting at 1."""
    checksum_field: Annotated[int, Field(ge=1)] | None = None
    """Position of the checksum of all preceding lines, starting at 1."""
    checksum: Checksum | None = None
    """Checksum algorithm."""


class ControlManifest(SpecModel):
    """A control file next to the data, with one `name=value` per line."""

    kind: Literal["control"]
    """`control`"""
    path: str
    """Path of the control file, such as landing/{business_date}/fx.ctl."""
    delimiter: str = "="
    """Delimiter between a name and its value."""
    rows: str = "rows"
    """Name of the row count; "" if the file does not give one."""
    checksum_name: str | None = None
    """Name of the checksum."""
    checksum: Checksum | None = None
    """Checksum algorithm."""


Manifest = Annotated[JsonManifest | TrailerManifest | ControlManifest, Field(discriminator="kind")]


class Consumer(SpecModel):
    """A consumer outside the platform that receives a feed."""

    name: str
    """Name of the system or company."""
    email: Email | None = None
    """Contact address."""
    notify: OneOrMany = ()
    """Notification channels that announce each new version to this consumer."""


class Feed(SpecModel):
    """Delivers the dataset to other systems at a stable location."""

    latest: str
    """Stable location of the newest version."""
    consumers: tuple[Consumer, ...] = ()
    """Who receives the feed."""


class DatasetAlias(SpecModel):
    """Another name of the dataset, as reported by a lineage client."""

    namespace: str
    """The OpenLineage namespace, such as s3://bucket."""
    name: str
    """The OpenLineage name, such as exposure/daily."""


class DatasetSpec(SpecModel):
    """A dataset: its location, format, schema, owner, SLA and checks."""

    description: str = ""
    """What the data is."""
    owner: Owner | None = None
    """Who is responsible for the dataset."""
    category: str | None = None
    """Subject area, for search."""
    tags: tuple[str, ...] = ()
    """Keywords, for search."""
    classification: str | None = None
    """Sensitivity: one of `governance.classifications`."""
    format: str = DEFAULT_FORMAT
    """iceberg, parquet, csv, fixed_width, jdbc, files, or a plug-in format."""
    location: str | None = None
    """Path of its files; may contain {business_date}, {partition} and {version}."""
    storage: str | None = None
    """Storage profile in platform.yaml; by default that of the project."""
    options: dict[str, AnyValue] = Field(default_factory=dict)
    """Options for reading and writing the format."""
    manifest: Manifest | None = None
    """How to verify that a delivery is complete and correct, before any row is read."""
    columns: tuple[Column, ...] = Field(default=(), alias="schema")
    """The columns. A declared schema is a contract, enforced on every write."""
    keys: tuple[str, ...] = ()
    """Columns that identify a row; used by `write: merge`."""
    partition_column: str | None = None
    """Column that holds the partition of a row."""
    partitions: str | None = None
    """Partition definition in `orchestration.partitions` for its versions."""
    timezone: Zone | None = None
    """Time zone of its business dates; by default that of the project."""
    sla: DatasetSla | None = None
    """When each version must be ready."""
    checks: tuple[AnyCheck, ...] = ()
    """Checks that each version must pass before it can be read."""
    retention: RetentionOrAge | None = None
    """How long to keep superseded versions."""
    legal_hold: LegalHold | None = None
    """Legal hold: none of its data may be removed."""
    writers: Literal["one", "many"] = "one"
    """Whether one process or several may write it."""
    feed: Feed | None = None
    """How it is delivered to other systems."""
    aliases: tuple[DatasetAlias, ...] = ()
    """Other names of the dataset in lineage clients."""
    renamed_from: DatasetName | None = None
    """Previous name; the history moves to the new name."""

    @property
    def format_options(self) -> Options | dict[str, AnyValue]:
        """The options as the format's model, including defaults."""
        return typed_options(self.format, self.options)

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)
