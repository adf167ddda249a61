"""The inputs of a run as frames: one version, several as one, or none at all."""

from functools import reduce
from typing import TYPE_CHECKING

from floe.execution.planning import PlannedInput
from floe.execution.versions.places import format_of
from floe.execution.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession


def input_frame(workspace: Workspace, spark: "SparkSession", planned: PlannedInput) -> "DataFrame":
    """Return what a run reads under an alias."""
    form = format_of(workspace, planned.dataset)
    frames = [form.read(workspace.site, spark, place) for place in planned.versions]
    if not frames:
        return _empty(workspace, spark, planned.dataset)
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)


def _empty(workspace: Workspace, spark: "SparkSession", dataset: str) -> "DataFrame":
    """A frame without rows, for an optional input that is not there."""
    columns = workspace.dataset(dataset).columns
    typed = ", ".join(f"CAST(NULL AS {column.type}) AS `{column.name}`" for column in columns)
    return spark.sql(f"SELECT {typed or 'NULL AS nothing'} WHERE false")
