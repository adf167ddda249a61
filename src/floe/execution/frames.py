"""Data frames: a run's inputs, and conversion between Spark, pandas and Arrow."""

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

from floe.execution.planning import PlannedInput
from floe.execution.versions.version_access import format_of
from floe.execution.workspace import Workspace
from floe.spec import DatasetSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

Kind = Literal["spark", "pandas", "arrow"]
KINDS: dict[tuple[str, str], Kind] = {
    ("pyspark", "DataFrame"): "spark",
    ("pandas", "DataFrame"): "pandas",
    ("pyarrow", "Table"): "arrow",
}
"""Keyed by package and class name, so that no library has to be imported."""


def frame_kind(cls: type) -> Kind | None:
    """Return the kind of data frame a class is, or None."""
    for base in cls.__mro__:
        package = base.__module__.partition(".")[0]
        if (package, base.__name__) in KINDS:
            return KINDS[package, base.__name__]
    return None


def spark_frame(spark: "SparkSession", frame: Any, dataset: DatasetSpec) -> "DataFrame":
    """Convert a pandas or Arrow frame to Spark, with the declared column types."""
    converted: DataFrame = spark.createDataFrame(frame)
    return _as_declared(converted, dataset)


def convert_frame(frame: "DataFrame", kind: Kind) -> Any:
    """Convert a Spark frame to another kind; it must fit in memory."""
    if kind == "pandas":
        return frame.toPandas()
    return frame.toArrow() if kind == "arrow" else frame


def _as_declared(frame: "DataFrame", dataset: DatasetSpec) -> "DataFrame":
    """Cast to the declared types, because Python's numbers have no width."""
    from pyspark.sql import functions as F  # noqa: N812

    types = {column.name: column.type for column in dataset.columns}
    return frame.select(
        *(
            F.col(f"`{name}`").cast(types[name]).alias(name)
            if name in types
            else F.col(f"`{name}`")
            for name in frame.columns
        )
    )


def rows_of_keys(frame: "DataFrame", column: str, keys: Sequence[str]) -> "DataFrame":
    """Return the rows of some partitions, whatever the type of the partition column."""
    from pyspark.sql import functions as F  # noqa: N812

    return frame.where(F.col(f"`{column}`").cast("string").isin(list(keys)))


def input_frame(workspace: Workspace, spark: "SparkSession", planned: PlannedInput) -> "DataFrame":
    """Return an input's versions as one frame, combined by column name."""
    form = format_of(workspace, planned.dataset)
    frames = [form.read(workspace.site, spark, location) for location in planned.versions]
    if not frames:
        return _empty(workspace, spark, planned.dataset)
    return reduce(lambda left, other: left.unionByName(other, allowMissingColumns=True), frames)


def _empty(workspace: Workspace, spark: "SparkSession", dataset: str) -> "DataFrame":
    """Return a frame without rows, for a missing optional input."""
    columns = workspace.dataset(dataset).columns
    typed = ", ".join(f"CAST(NULL AS {column.type}) AS `{column.name}`" for column in columns)
    return spark.sql(f"SELECT {typed or 'NULL AS nothing'} WHERE false")
