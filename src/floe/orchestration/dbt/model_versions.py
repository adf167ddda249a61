"""Versions of dbt models: tag them after a build, find the last built."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dagster import AssetKey, AssetRecordsFilter, DagsterInstance

from floe.catalog.errors import DatasetNotFoundError
from floe.catalog.schemas import Column
from floe.catalog.versions import peek_tag
from floe.errors import FloeError
from floe.execution.asset_versions import VersionKey, read_table
from floe.execution.frames import rows_of_keys
from floe.execution.versions.snapshot_tags import tag_main, versions_on_main
from floe.execution.workspace import Workspace
from floe.orchestration.dbt.nodes import (
    Manifest,
    Node,
    dataset_of,
    key_of,
    materialized,
    upstream_of,
)
from floe.orchestration.metadata import SNAPSHOT, VERSION, Read
from floe.spec.identity import (
    VersionTagError,
    dataset_of_dagster_key,
    parse_version_tag,
    version_tag,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

VIEWS = frozenset({"view", "materialized_view"})


@dataclass(frozen=True)
class NodeVersions:
    """The versions of a node that was built: one per partition, or a single one."""

    tags: Sequence[str]
    snapshot: str | None = None
    rows: int | None = None
    size: int | None = None
    columns: Sequence[Column] = ()


class Versions:
    """Names the versions that a step builds, and knows those that it reads."""

    def __init__(
        self,
        workspace: Workspace,
        spark: "SparkSession",
        instance: DagsterInstance,
        manifest: Manifest,
    ) -> None:
        self._workspace = workspace
        self._spark = spark
        self._instance = instance
        self._manifest = manifest
        self._known: dict[str, str] = {}
        """The newest version of each dataset: built by this step, or there before it."""

    def look(self, nodes: Iterable[Node]) -> None:
        """Note the versions that the nodes will read and this step does not build."""
        nodes = list(nodes)
        built = {dataset_of(node) for node in nodes}
        read = {dataset_of(parent): parent for node in nodes for parent in self._reads(node)}
        foreign = {name: parent for name, parent in read.items() if name not in built}
        tables = [name for name, parent in foreign.items() if not is_view(parent)]
        self._known.update(versions_on_main(self._workspace.site, self._spark, tables))
        for name, parent in foreign.items():
            if is_view(parent) and (tag := self._last_reported(key_of(parent))):
                self._known[name] = tag

    def reads(self, node: Node) -> list[Read]:
        """Return the versions that a node has read."""
        names = (dataset_of(parent) for parent in self._reads(node))
        return [(name, self._known[name]) for name in names if name in self._known]

    def tag(self, node: Node, moments: Sequence[VersionKey]) -> NodeVersions:
        """Tag the versions of a node that was built. A view has no snapshot to tag."""
        dataset = dataset_of(node)
        wanted = [self._next(dataset, key_of(node), moment) for moment in moments]
        built = NodeVersions(wanted)
        if not is_view(node):
            shown, given = tag_main(self._workspace.site, self._spark, dataset, wanted)
            built = NodeVersions(given, shown.snapshot, shown.rows, shown.size, shown.columns)
        self._known[dataset] = built.tags[-1]
        return built

    def _reads(self, node: Node) -> Iterator[Node]:
        return upstream_of(self._manifest, node)

    def _next(self, dataset: str, key: AssetKey, moment: VersionKey) -> str:
        """Return the next tag, after those in the catalog and in Dagster's event log.

        The catalog learns of a materialization later, when the observer has read the log.
        """
        tag = self._peek(dataset, moment)
        reported = self._last_reported(key)
        return tag if reported is None else _later(tag, reported)

    def _peek(self, dataset: str, moment: VersionKey) -> str:
        with self._workspace.catalog.reading() as session:
            try:
                dataset_id = self._workspace.dataset_id(dataset, session)
            except DatasetNotFoundError:
                return version_tag(moment.key, 1)
            return peek_tag(session, dataset_id, moment.business_date, moment.partition)

    def _last_reported(self, key: AssetKey) -> str | None:
        """Return the version in Dagster's latest materialization."""
        event = self._instance.get_latest_materialization_event(key)
        reported = event.asset_materialization if event is not None else None
        metadata: Mapping[str, Any] = reported.metadata if reported is not None else {}
        value = metadata.get(VERSION)
        return None if value is None else str(value.value)


def is_view(node: Node) -> bool:
    """Tell whether a node is a view, without rows of its own."""
    return materialized(node) in VIEWS if "config" in node else False


def _later(tag: str, reported: str) -> str:
    key, sequence = parse_version_tag(tag)
    try:
        reported_key, last = parse_version_tag(reported)
    except VersionTagError:
        return tag
    return version_tag(key, max(sequence, last + 1)) if reported_key == key else tag


class NotBuiltError(FloeError):
    """A model was read that dbt has not built yet."""

    def __init__(self, dataset: str, keys: Sequence[str]) -> None:
        when = f" for {keys[-1]}" if keys else ""
        super().__init__(
            f"dbt has not built '{dataset}'{when} yet. Materialize it in Dagster first."
        )


@dataclass(frozen=True)
class ModelVersion:
    """A version of a model. A view has no snapshot."""

    dataset: str
    tag: str
    snapshot: str | None

    def frame(
        self, workspace: Workspace, spark: "SparkSession", keys: Sequence[str] = ()
    ) -> "DataFrame":
        """Read all rows, or those of some keys if there is a partition column."""
        frame = read_table(workspace, spark, self.dataset, self.snapshot)
        column = workspace.dataset(self.dataset).partition_column
        return rows_of_keys(frame, column, keys) if keys and column is not None else frame


def last_built(instance: DagsterInstance, key: AssetKey, keys: Sequence[str] = ()) -> ModelVersion:
    """Return the latest version in Dagster's event log: of a model, or of its last key.

    The catalog learns of it later, when the observer has read the log of the run.
    """
    dataset = dataset_of_dagster_key(list(key.path))
    wanted = AssetRecordsFilter(key, asset_partitions=[keys[-1]] if keys else None)
    for record in instance.fetch_materializations(wanted, limit=1).records:
        reported = record.asset_materialization
        metadata: dict[str, Any] = {} if reported is None else dict(reported.metadata)
        if VERSION in metadata:
            snapshot = metadata.get(SNAPSHOT)
            return ModelVersion(
                dataset,
                str(metadata[VERSION].value),
                None if snapshot is None else str(snapshot.value),
            )
    raise NotBuiltError(dataset, keys)
