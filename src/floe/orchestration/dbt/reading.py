"""What dbt has made, for assets that name it as a parameter: as Dagster was told of it last.

The catalog hears of it later, when the observer has read the log of the run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dagster import AssetKey, AssetRecordsFilter, DagsterInstance

from floe.errors import FloeError
from floe.execution.assets import read_table
from floe.execution.frames import rows_of_keys
from floe.execution.workspace import Workspace
from floe.orchestration.metadata import SNAPSHOT, VERSION
from floe.spec.identity import dataset_of_dagster_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession


class NotMadeError(FloeError):
    """A model is to be read that was not made yet."""

    def __init__(self, dataset: str, keys: Sequence[str]) -> None:
        when = f" for {keys[-1]}" if keys else ""
        super().__init__(f"dbt has not made '{dataset}'{when} yet. Let Dagster make it first.")


@dataclass(frozen=True)
class Made:
    """A version of a model; a view has no snapshot."""

    dataset: str
    tag: str
    snapshot: str | None

    def frame(
        self, workspace: Workspace, spark: "SparkSession", keys: Sequence[str] = ()
    ) -> "DataFrame":
        """Read it: all, or the rows of some partitions where a column tells them apart."""
        frame = read_table(workspace, spark, self.dataset, self.snapshot)
        column = workspace.dataset(self.dataset).partition_column
        return rows_of_keys(frame, column, keys) if keys and column is not None else frame


def last_made(instance: DagsterInstance, key: AssetKey, keys: Sequence[str] = ()) -> Made:
    """Return what Dagster was told of last: of a model, or of the newest of some partitions."""
    dataset = dataset_of_dagster_key(list(key.path))
    wanted = AssetRecordsFilter(key, asset_partitions=[keys[-1]] if keys else None)
    for record in instance.fetch_materializations(wanted, limit=1).records:
        told = record.asset_materialization
        metadata: dict[str, Any] = {} if told is None else dict(told.metadata)
        if VERSION in metadata:
            snapshot = metadata.get(SNAPSHOT)
            return Made(
                dataset,
                str(metadata[VERSION].value),
                None if snapshot is None else str(snapshot.value),
            )
    raise NotMadeError(dataset, keys)
