"""Column lineage: which columns feed which, through which process and how.

A process has one column lineage for each dataset it writes. Each distinct lineage is stored once,
under its hash; the one seen last is current.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from sqlalchemy import ColumnElement, and_, case, func, or_, select
from sqlalchemy.orm import Session, aliased

from floe.catalog.errors import NotFoundError
from floe.catalog.schemas import list_columns
from floe.catalog.stores import store_of
from floe.catalog.tables import ColumnEdge, ColumnSighting, Dataset, Process
from floe.spec.nearby import suggest

DIRECT, AGGREGATE, FILTER, JOIN = "DIRECT", "AGGREGATE", "FILTER", "JOIN"

ALL_COLUMNS = "*"
"""All rows: as a target, what a filter affects; as a source, rows that are only counted."""


class ColumnRef(NamedTuple):
    """A column of a dataset."""

    dataset_id: int
    column: str


def is_current() -> ColumnElement[bool]:
    """Select the edges of the newest lineage of each process and dataset."""
    sighting, newer = aliased(ColumnSighting), aliased(ColumnSighting)
    superseded = (
        select(newer.process_id)
        .where(
            newer.process_id == sighting.process_id,
            newer.dataset_id == sighting.dataset_id,
            or_(
                newer.last_seen > sighting.last_seen,
                and_(
                    newer.last_seen == sighting.last_seen,
                    newer.lineage_hash > sighting.lineage_hash,
                ),
            ),
        )
        .exists()
    )
    return (
        select(sighting.process_id)
        .where(
            sighting.process_id == ColumnEdge.process_id,
            sighting.dataset_id == ColumnEdge.target_dataset_id,
            sighting.lineage_hash == ColumnEdge.lineage_hash,
            ~superseded,
        )
        .exists()
    )


Side = Literal["upstream", "downstream"]

DEFAULT_DEPTH = 5

MAX_COLUMNS = 10_000

# More column names than this are not looked up in the index: whole datasets are read instead.
MAX_NAMES = 100


class ColumnNotFoundError(NotFoundError):
    """The dataset has no such column."""

    def __init__(self, dataset: str, column: str, known: Sequence[str]) -> None:
        hint = suggest(column, known, f"Columns: {', '.join(known) or 'none'}.")
        super().__init__(f"Dataset '{dataset}' has no column '{column}'. {hint}")


class ColumnNode(Struct, gc=False):
    """A column that a walk reached."""

    dataset_id: int
    dataset: str
    column: str
    depth: int
    more: bool = False  # the walk stopped here although the graph continues


class ColumnLink(NamedTuple):
    """A column that feeds another: copied, aggregated, filtered or joined by."""

    source: ColumnRef
    target: ColumnRef
    kind: str
    process: str


@dataclass(frozen=True)
class ColumnLineage:
    """The result of a walk over columns, in order of distance from the start."""

    columns: Sequence[ColumnNode]
    edges: Sequence[ColumnLink]
    truncated: bool


def walk_columns(
    session: Session,
    dataset: Dataset,
    column: str | None = None,
    direction: Side = "upstream",
    depth: int = DEFAULT_DEPTH,
    *,
    max_columns: int = MAX_COLUMNS,
) -> ColumnLineage:
    """Walk from one column, or from all columns of a dataset that have lineage.

    Runs one query per level.
    """
    start = _start(session, dataset, column, direction)
    walk = _ColumnWalk(direction, dict.fromkeys(start, 0), {}, start, max_columns)
    for level in range(1, depth + 1):
        if walk.truncated or not walk.frontier:
            break
        walk.take(_links_at(session, walk.frontier, direction), level)
    more: set[ColumnRef] = set()
    if walk.frontier and not walk.truncated:
        near = "source" if direction == "downstream" else "target"
        beyond = _links_at(session, walk.frontier, direction)
        more = {getattr(link, near) for link in beyond}
    truncated = walk.truncated or bool(more)
    return ColumnLineage(_name(session, walk.depths, more), list(walk.links), truncated)


def list_row_sources(session: Session, dataset: Dataset) -> list[str]:
    """Return the input datasets that feed no column of a dataset, only its rows.

    They are used to count, join or filter: each of their edges has `*` as its source or target.
    """
    about_rows = or_(
        ColumnEdge.source_column == ALL_COLUMNS, ColumnEdge.target_column == ALL_COLUMNS
    )
    return list(
        session.scalars(
            select(Dataset.name)
            .join(ColumnEdge, ColumnEdge.source_dataset_id == Dataset.dataset_id)
            .where(ColumnEdge.target_dataset_id == dataset.dataset_id, is_current())
            .group_by(Dataset.dataset_id, Dataset.name)
            .having(func.min(case((about_rows, 1), else_=0)) == 1)
            .order_by(Dataset.name)
        )
    )


@dataclass
class _ColumnWalk:
    """The state of a walk over columns."""

    direction: Side
    depths: dict[ColumnRef, int]
    links: dict[ColumnLink, None]
    frontier: list[ColumnRef]
    max_columns: int
    truncated: bool = False

    def take(self, links: Iterable[ColumnLink], level: int) -> None:
        """Add the links of the next level."""
        self.frontier = []
        for link in links:
            far = link.target if self.direction == "downstream" else link.source
            if far not in self.depths:
                if len(self.depths) >= self.max_columns:
                    self.truncated = True
                    continue
                self.depths[far] = level
                self.frontier.append(far)
            self.links[link] = None


def _start(
    session: Session, dataset: Dataset, column: str | None, direction: Side
) -> list[ColumnRef]:
    if column is None:
        linked = _linked_columns(session, dataset.dataset_id, direction)
        return [ColumnRef(dataset.dataset_id, name) for name in linked]
    known = [known_column.name for known_column in list_columns(session, dataset.schema_hash)]
    if column not in known:
        # Lineage can be reported without a schema.
        known += _linked_columns(session, dataset.dataset_id, "upstream")
        known += _linked_columns(session, dataset.dataset_id, "downstream")
    if column not in known:
        raise ColumnNotFoundError(dataset.name, column, list(dict.fromkeys(known)))
    return [ColumnRef(dataset.dataset_id, column)]


def _linked_columns(session: Session, dataset_id: int, direction: Side) -> list[str]:
    near_dataset, near_column = _near(direction)
    return list(
        session.scalars(
            select(near_column)
            .where(near_dataset == dataset_id, is_current())
            .distinct()
            .order_by(near_column)
        )
    )


def _links_at(
    session: Session, frontier: Sequence[ColumnRef], direction: Side
) -> Iterator[ColumnLink]:
    near_dataset, near_column = _near(direction)
    at = ColumnEdge.__table__.c
    statement = (
        select(
            at.source_dataset_id,
            at.source_column,
            at.target_dataset_id,
            at.target_column,
            at.kind,
            Process.process_key,
        )
        .join(Process, Process.process_id == at.process_id)
        .where(
            store_of(session).among(near_dataset, sorted({ref.dataset_id for ref in frontier})),
            is_current(),
        )
    )
    names = {ref.column for ref in frontier}
    if len(names) <= MAX_NAMES:
        statement = statement.where(near_column.in_(sorted(names)))
    wanted, downstream = set(frontier), direction == "downstream"
    rows: Any = session.execute(statement)
    for source_id, source, target_id, target, kind, process in rows:
        link = ColumnLink(ColumnRef(source_id, source), ColumnRef(target_id, target), kind, process)
        if (link.source if downstream else link.target) in wanted:
            yield link


def _near(direction: Side) -> tuple[Any, Any]:
    at = ColumnEdge.__table__.c
    if direction == "downstream":
        return at.source_dataset_id, at.source_column
    return at.target_dataset_id, at.target_column


def _name(
    session: Session, depths: Mapping[ColumnRef, int], more: Collection[ColumnRef]
) -> list[ColumnNode]:
    of = Dataset.__table__.c
    ids = sorted({ref.dataset_id for ref in depths})
    rows: Any = session.execute(
        select(of.dataset_id, of.name).where(store_of(session).among(of.dataset_id, ids))
    )
    names = dict(rows.all())
    return [
        ColumnNode(ref[0], names[ref[0]], ref[1], depth, ref in more)
        for ref, depth in depths.items()
    ]
