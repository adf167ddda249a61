"""Column lineage: which columns feed a column, which it feeds, by what kind of use and process."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple

from sqlalchemy import case, func, or_, select
from sqlalchemy.orm import Session

from floe.catalog.column_edges import ALL_COLUMNS, ColumnRef, is_current
from floe.catalog.errors import NotFoundError
from floe.catalog.schemas import list_columns
from floe.catalog.stores import store_of
from floe.catalog.tables import ColumnEdge, Dataset, Process

Side = Literal["upstream", "downstream"]

DEFAULT_DEPTH = 5
MAX_COLUMNS = 10_000
# Up to so many names are looked for in the index; beyond it whole datasets are read.
MAX_NAMES = 100


class ColumnNotFoundError(NotFoundError):
    """A column was named that its dataset does not have."""

    def __init__(self, dataset: str, column: str, known: Sequence[str]) -> None:
        near = get_close_matches(column, known, n=1)
        hint = f"Did you mean '{near[0]}'?" if near else f"It has: {', '.join(known) or 'none'}."
        super().__init__(f"Dataset '{dataset}' has no column '{column}'. {hint}")


class ColumnNode(NamedTuple):
    """A column that a walk reached."""

    dataset_id: int
    dataset: str
    column: str
    depth: int
    more: bool = False  # the walk stopped here, and the graph goes on


class ColumnLink(NamedTuple):
    """A column that feeds another: taken over, aggregated, or used to filter or to join."""

    source: ColumnRef
    target: ColumnRef
    kind: str
    process: str


@dataclass(frozen=True)
class ColumnLineage:
    """What a walk over columns found: the start first, then the others by distance."""

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
    """Walk from one column of a dataset, or from all that have lineage, one query per level."""
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


def list_also_read(session: Session, dataset: Dataset) -> list[str]:
    """Return datasets whose rows decide on a dataset, while no column of it is made from them.

    They are counted, joined or filtered by: each of their edges is about rows (`*`), at its source
    or its target.
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
    """How far a walk has come."""

    direction: Side
    depths: dict[ColumnRef, int]
    links: dict[ColumnLink, None]
    frontier: list[ColumnRef]
    max_columns: int
    truncated: bool = False

    def take(self, links: Iterable[ColumnLink], level: int) -> None:
        """Go one level further."""
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
    known = [one.name for one in list_columns(session, dataset.schema_hash)]
    if column not in known:
        # A schema is not always reported where lineage is.
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
