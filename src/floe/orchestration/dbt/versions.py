"""What dbt has made becomes a version: main of its table is tagged, and the tag is told."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dagster import AssetKey, DagsterInstance

from floe.catalog.errors import DatasetNotFoundError
from floe.catalog.schemas import Column
from floe.catalog.versions import peek_tag
from floe.execution.assets import Moment
from floe.execution.versions.tagging import shown_versions, tag_main
from floe.execution.workspace import Workspace
from floe.orchestration.dbt.nodes import (
    Manifest,
    Node,
    dataset_of,
    key_of,
    materialized,
    upstream_of,
)
from floe.orchestration.metadata import VERSION, Read
from floe.spec.identity import VersionTagError, parse_version_tag, version_tag

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

VIEWS = frozenset({"view", "materialized_view"})


@dataclass(frozen=True)
class Made:
    """The versions that a node has become: one for each partition, or one."""

    tags: Sequence[str]
    snapshot: str | None = None
    rows: int | None = None
    size: int | None = None
    columns: Sequence[Column] = ()


class Versions:
    """Names the versions of what a step makes, and knows those that it reads."""

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
        """The version of each dataset that this step made, or that was there before it."""

    def look(self, nodes: Iterable[Node]) -> None:
        """Note which versions the nodes are going to read that others have made."""
        nodes = list(nodes)
        made = {dataset_of(node) for node in nodes}
        read = {dataset_of(one): one for node in nodes for one in self._reads(node)}
        tables = [name for name, one in read.items() if not is_view(one) and name not in made]
        self._known.update(shown_versions(self._workspace.site, self._spark, tables))
        for name, one in read.items():
            if is_view(one) and name not in made and (tag := self._last_told(key_of(one))):
                self._known[name] = tag

    def reads(self, node: Node) -> list[Read]:
        """Return what a node has read, as far as it has versions."""
        names = (dataset_of(one) for one in self._reads(node))
        return [(name, self._known[name]) for name in names if name in self._known]

    def make(self, node: Node, moments: Sequence[Moment]) -> Made:
        """Give what was made its tags. A view has nothing in the lake that could be tagged."""
        dataset = dataset_of(node)
        wanted = [self._next(dataset, key_of(node), moment) for moment in moments]
        made = Made(wanted)
        if not is_view(node):
            shown, given = tag_main(self._workspace.site, self._spark, dataset, wanted)
            made = Made(given, shown.snapshot, shown.rows, shown.size, shown.columns)
        self._known[dataset] = made.tags[-1]
        return made

    def _reads(self, node: Node) -> Iterator[Node]:
        return upstream_of(self._manifest, node)

    def _next(self, dataset: str, key: AssetKey, moment: Moment) -> str:
        """Return the next tag: after all that the catalog knows, and what it is yet to be told."""
        tag = self._peek(dataset, moment)
        told = self._last_told(key)
        return tag if told is None else _later(tag, told)

    def _peek(self, dataset: str, moment: Moment) -> str:
        with self._workspace.catalog.reading() as session:
            try:
                number = self._workspace.dataset_id(dataset, session)
            except DatasetNotFoundError:
                return version_tag(moment.key, 1)
            return peek_tag(session, number, moment.business_date, moment.partition)

    def _last_told(self, key: AssetKey) -> str | None:
        """Return the version that Dagster was told of last."""
        event = self._instance.get_latest_materialization_event(key)
        told = event.asset_materialization if event is not None else None
        metadata: Mapping[str, Any] = told.metadata if told is not None else {}
        value = metadata.get(VERSION)
        return None if value is None else str(value.value)


def is_view(node: Node) -> bool:
    """Tell whether a node has no rows of its own."""
    return materialized(node) in VIEWS if "config" in node else False


def _later(tag: str, told: str) -> str:
    key, number = parse_version_tag(tag)
    try:
        before, last = parse_version_tag(told)
    except VersionTagError:
        return tag
    return version_tag(key, max(number, last + 1)) if before == key else tag
