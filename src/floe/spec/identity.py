"""Names of datasets, processes, runs and versions in floe and other tools."""

import uuid
from dataclasses import dataclass
from datetime import date, datetime

from floe.clock import today
from floe.errors import FloeError

FLOE, DBT, DAGSTER = "floe", "dbt", "dagster"
BUSINESS_DATE_TAG = "floe/business_date"
DAILY_KEY = "%Y-%m-%d"
DEFAULT_SCHEMA = "default"
"""Schema in the lake of the tables of datasets whose name has no schema."""

_RUNS = uuid.UUID("0d9c1f0e-6f0a-5b3c-9a52-3f2f6f1c7e11")
"""Namespace of run ids. Never change it: the same step must always get the same id."""


class VersionTagError(FloeError):
    """A text is not a valid version tag."""

    def __init__(self, tag: str) -> None:
        super().__init__(
            f"'{tag}' is not a version tag. Write it as <business date or partition>.<number>, "
            "such as 2026-09-01.1."
        )


@dataclass(frozen=True)
class DatasetId:
    """A dataset's OpenLineage name; floe's datasets have the lake's namespace."""

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
    """Return schema and table of a dataset: `customers` → `("default", "customers")`."""
    parts = tuple(dataset.split("."))
    return parts if len(parts) > 1 else (DEFAULT_SCHEMA, *parts)


def dataset_of_table(schema: str, table: str) -> str:
    """Return the dataset of a table: `silver.orders`, or `orders` in `default`."""
    return table if schema == DEFAULT_SCHEMA else f"{schema}.{table}"


@dataclass(frozen=True)
class ProcessId:
    """A process's OpenLineage job name; the catalog stores its key."""

    namespace: str
    name: str

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


def floe_process(project: str, name: str) -> ProcessId:
    """Return the id of a process in floe.yaml, or of a Python asset."""
    return ProcessId(f"{FLOE}/{project}", name)


def dbt_process(project: str, model: str) -> ProcessId:
    """Return the process id of a dbt model."""
    return ProcessId(f"{DBT}/{project}", model)


def dagster_job(project: str, job: str) -> ProcessId:
    """Return the process id of a Dagster job, the parent of the processes it runs."""
    return ProcessId(DAGSTER, f"{project}/{job}")


def process_of_key(key: str) -> ProcessId:
    """Split a stored key into its OpenLineage namespace and name.

    The namespaces of floe and dbt include the project. Any other namespace is the part
    before the first slash, or a URL with its host (`s3://bucket`).
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
    """Return the id of a run, stable for the same step, partition and attempt."""
    return uuid.uuid5(_RUNS, "\x1f".join([dagster_run, step, partition or "", str(attempt)]))


def default_business_date(zone: str) -> date:
    """Return the default business date of unpartitioned work: today, in its time zone."""
    return today(zone)


def business_date_of_key(key: str, fmt: str = DAILY_KEY) -> date:
    """Return the business date of a time partition key."""
    return datetime.strptime(key, fmt).date()  # noqa: DTZ007 - a date has no zone


def version_tag(partition: date | str, count: int) -> str:
    """Return the tag of a version, such as `2026-09-01.1`."""
    key = partition.isoformat() if isinstance(partition, date) else partition
    return f"{key}.{count}"


def parse_version_tag(tag: str) -> tuple[str, int]:
    """Split a version tag into its business date or partition, and its count."""
    partition, dot, count = tag.rpartition(".")
    if not (partition and dot and count.isascii() and count.isdigit() and int(count) > 0):
        raise VersionTagError(tag)
    return partition, int(count)
