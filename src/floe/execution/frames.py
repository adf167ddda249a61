"""Frames of every kind as Spark's, and Spark's as what somebody asked for."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

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
"""By the package and the name of the class, so that none of them has to be imported."""


def kind_of(cls: type) -> Kind | None:
    """Return which kind of frame a class is of; None for anything else."""
    for one in cls.__mro__:
        package = one.__module__.partition(".")[0]
        if (package, one.__name__) in KINDS:
            return KINDS[package, one.__name__]
    return None


def spark_frame(spark: "SparkSession", frame: Any, dataset: DatasetSpec) -> "DataFrame":
    """Return a pandas or Arrow frame as one of Spark's, with the types that are declared."""
    made: DataFrame = spark.createDataFrame(frame)
    return _as_declared(made, dataset)


def fetched(frame: "DataFrame", kind: Kind) -> Any:
    """Return a frame of Spark's as one of another kind, which fits in memory."""
    if kind == "pandas":
        return frame.toPandas()
    return frame.toArrow() if kind == "arrow" else frame


def _as_declared(frame: "DataFrame", dataset: DatasetSpec) -> "DataFrame":
    """Python's numbers know no widths: what is declared is what they are meant to be."""
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
    """Return the rows of some partitions, whatever the type of the column that holds them."""
    from pyspark.sql import functions as F  # noqa: N812

    return frame.where(F.col(f"`{column}`").cast("string").isin(list(keys)))
