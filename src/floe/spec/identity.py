"""The one place that maps names: dataset, process, run and version, here and in other worlds."""

import uuid
from dataclasses import dataclass
from datetime import date, datetime

from floe.clock import today
from floe.errors import FloeError

FLOE, DBT, AUTOSYS, DAGSTER = "floe", "dbt", "AUTOSYS", "dagster"
BUSINESS_DATE_TAG = "floe/business_date"
DAILY_KEY = "%Y-%m-%d"
DEFAULT_SCHEMA = "default"
"""Where the lake keeps the table of a dataset whose name has no schema."""

_RUNS = uuid.UUID("0d9c1f0e-6f0a-5b3c-9a52-3f2f6f1c7e11")
"""The namespace of run ids. It never changes: the same step must get the same id for ever."""


class VersionTagError(FloeError):
    """A text is not a version tag."""

    def __init__(self, tag: str) -> None:
        super().__init__(
            f"'{tag}' is not a version tag. Write it as <business date or partition>.<number>, "
            "such as 2026-09-01.1."
        )


@dataclass(frozen=True)
class DatasetId:
    """A dataset as OpenLineage names it. A dataset of floe's own lives in the lake's namespace."""

    namespace: str
    name: str

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"


def dagster_key(dataset: str) -> list[str]:
    """`bronze.raw_customers` → `["bronze", "raw_customers"]`."""
    return dataset.split(".")


def dataset_of_dagster_key(key: list[str]) -> str:
    """`["bronze", "raw_customers"]` → `bronze.raw_customers`."""
    return ".".join(key)


def lake_table(dataset: str) -> tuple[str, ...]:
    """Return the schema and table of a dataset: `customers` → `("default", "customers")`."""
    parts = tuple(dataset.split("."))
    return parts if len(parts) > 1 else (DEFAULT_SCHEMA, *parts)


def dataset_of_table(schema: str, table: str) -> str:
    """Return the dataset of a table: `silver.orders`, and `orders` in the default schema."""
    return table if schema == DEFAULT_SCHEMA else f"{schema}.{table}"


@dataclass(frozen=True)
class ProcessId:
    """A process as OpenLineage names its job; the key is what the catalog stores."""

    namespace: str
    name: str

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


def floe_process(project: str, name: str) -> ProcessId:
    """A process of floe.yaml, or a Python asset by its key."""
    return ProcessId(f"{FLOE}/{project}", name)


def dbt_process(project: str, model: str) -> ProcessId:
    """A dbt model."""
    return ProcessId(f"{DBT}/{project}", model)


def dagster_job(project: str, job: str) -> ProcessId:
    """A job of Dagster, whose runs hold those of assets, models and processes."""
    return ProcessId(DAGSTER, f"{project}/{job}")


def autosys_process(job: str, box: str | None = None) -> ProcessId:
    """An AutoSys job, within its box when it has one."""
    return ProcessId(AUTOSYS, f"{box}/{job}" if box else job)


def process_of_key(key: str) -> ProcessId:
    """Split a stored key into OpenLineage's namespace and name.

    floe's and dbt's namespaces hold the project too; every other namespace is what stands
    before the first slash, unless it is an address (`s3://bucket`).
    """
    scheme, address, rest = key.partition("://")
    if address:
        host, _, name = rest.partition("/")
        return ProcessId(f"{scheme}://{host}", name)
    slashes = 2 if key.startswith((f"{FLOE}/", f"{DBT}/")) else 1
    *namespace, name = key.split("/", slashes)
    return ProcessId("/".join(namespace), name)


def run_id(
    dagster_run: str, step: str, partition: str | None = None, attempt: int = 1
) -> uuid.UUID:
    """The id of a run: the same step, partition and attempt always give the same one."""
    return uuid.uuid5(_RUNS, "\x1f".join([dagster_run, step, partition or "", str(attempt)]))


def default_business_date(zone: str) -> date:
    """The business date of something unpartitioned that was given none: today, in its zone."""
    return today(zone)


def business_date_of_key(key: str, fmt: str = DAILY_KEY) -> date:
    """The business date that the key of a time partition stands for."""
    return datetime.strptime(key, fmt).date()  # noqa: DTZ007 - a date has no zone


def version_tag(partition: date | str, number: int) -> str:
    """The tag of a version: `2026-09-01.1`; a rerun counts up."""
    key = partition.isoformat() if isinstance(partition, date) else partition
    return f"{key}.{number}"


def parse_version_tag(tag: str) -> tuple[str, int]:
    """Split a tag into its business date or partition, and its number."""
    partition, dot, number = tag.rpartition(".")
    if not (partition and dot and number.isascii() and number.isdigit() and int(number) > 0):
        raise VersionTagError(tag)
    return partition, int(number)
