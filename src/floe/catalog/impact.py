"""Impact: what is affected when a dataset is late or wrong, and who owns it.

For a dataset, the edges of the graph are followed; for a version, the inputs and outputs of runs.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

from msgspec import Struct
from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from floe.catalog.edges import DATASET, PROCESS, Node
from floe.catalog.lineage import LineageNode, walk_lineage
from floe.catalog.stores import store_of
from floe.catalog.tables import Dataset, DatasetVersion, Process, ProcessRun, RunInput, Sla
from floe.catalog.version_queries import StateEvent, describe_state, get_version_by_id
from floe.catalog.versions import READY, REJECTED, RETRACTED, SUPERSEDED

# Deeper than any real graph, so that a walk ends only at the end of the graph.
WHOLE_GRAPH = 1000


@dataclass(frozen=True)
class DepthCount:
    """The number of affected datasets and processes at one distance."""

    depth: int
    datasets: int
    processes: int


@dataclass(frozen=True)
class TeamImpact:
    """A team that owns affected datasets or processes, with its e-mail addresses."""

    team: str
    emails: tuple[str, ...]
    datasets: int
    processes: int


@dataclass(frozen=True)
class SlaImpact:
    """An SLA at risk, with its dataset or process."""

    sla_id: int
    name: str
    due: str | None
    zone: str | None
    window_sec: int | None
    node: Node
    key: str


@dataclass(frozen=True)
class Impact:
    """Everything downstream of a dataset, nearest first."""

    datasets: Sequence[LineageNode]
    processes: Sequence[LineageNode]
    by_depth: Sequence[DepthCount]
    teams: Sequence[TeamImpact]
    slas: Sequence[SlaImpact]
    truncated: bool


class _AffectedNode(NamedTuple):
    """An affected node with its owner and its SLA."""

    node: Node
    key: str
    team: str | None
    email: str | None
    sla_id: int | None
    sla: str
    due: str | None
    zone: str | None
    window_sec: int | None


def summarize_impact(session: Session, dataset_id: int, depth: int = WHOLE_GRAPH) -> Impact:
    """Return everything downstream of a dataset, with its owners and SLAs."""
    lineage = walk_lineage(session, Node(DATASET, dataset_id), "downstream", depth)
    affected = lineage.nodes[1:]
    datasets = [node for node in affected if node.type == DATASET]
    processes = [node for node in affected if node.type == PROCESS]
    affected_nodes = [
        *_affected_datasets(session, datasets),
        *_affected_processes(session, processes),
    ]
    return Impact(
        datasets=datasets,
        processes=processes,
        by_depth=_count_by_depth(affected),
        teams=_group_by_team(affected_nodes),
        slas=_list_slas(affected_nodes),
        truncated=lineage.truncated,
    )


def _affected_datasets(session: Session, nodes: Iterable[LineageNode]) -> list[_AffectedNode]:
    of = Dataset.__table__.c
    owner = (of.dataset_id, of.full_name, of.owner_team, of.owner_email)
    return _affected(session, DATASET, nodes, owner, of.default_sla_id)


def _affected_processes(session: Session, nodes: Iterable[LineageNode]) -> list[_AffectedNode]:
    of = Process.__table__.c
    owner = (of.process_id, of.process_key, of.team, of.owner_email)
    return _affected(session, PROCESS, nodes, owner, of.sla_id)


def _affected(
    session: Session, node_type: str, nodes: Iterable[LineageNode], owner: Any, sla_id: Any
) -> list[_AffectedNode]:
    ids = [node.id for node in nodes]
    sla = (Sla.sla_id, Sla.name, Sla.due, Sla.zone, Sla.sla_window_sec)
    rows: Any = session.execute(
        select(*owner, *sla)
        .join(Sla, Sla.sla_id == sla_id, isouter=True)
        .where(store_of(session).among(owner[0], ids))
        .order_by(owner[1])
    )
    return [_AffectedNode(Node(node_type, node_id), *rest) for node_id, *rest in rows]


def _count_by_depth(nodes: Iterable[LineageNode]) -> list[DepthCount]:
    counts = Counter((node.depth, node.type) for node in nodes)
    depths = sorted({depth for depth, _ in counts})
    return [DepthCount(depth, counts[depth, DATASET], counts[depth, PROCESS]) for depth in depths]


def _group_by_team(affected: Iterable[_AffectedNode]) -> list[TeamImpact]:
    teams: dict[str, list[_AffectedNode]] = defaultdict(list)
    for node in affected:
        if node.team:
            teams[node.team].append(node)
    return [_team(team, owned) for team, owned in sorted(teams.items())]


def _team(team: str, owned: Sequence[_AffectedNode]) -> TeamImpact:
    emails = sorted({row.email for row in owned if row.email})
    counts = Counter(row.node.type for row in owned)
    return TeamImpact(team, tuple(emails), counts[DATASET], counts[PROCESS])


def _list_slas(affected: Iterable[_AffectedNode]) -> list[SlaImpact]:
    return [
        SlaImpact(row.sla_id, row.sla, row.due, row.zone, row.window_sec, row.node, row.key)
        for row in affected
        if row.sla_id is not None
    ]


WITHDRAWN = (RETRACTED, REJECTED)

MAX_LEVELS, MAX_RESULTS = 50, 1_000

BATCH = 500


class WithdrawnInput(NamedTuple):
    """An upstream version that was retracted or rejected after it was read."""

    full_name: str
    name: str
    tag: str
    state: str
    event: StateEvent | None


class DerivedVersion(Struct, frozen=True):
    """A version that was created from another one, directly or indirectly."""

    dataset_version_id: int
    full_name: str
    name: str
    version_tag: str
    business_date: date | None
    state: str
    owner_team: str | None
    owner_email: str | None
    process_key: str | None
    run_uuid: str | None
    depth: int


def find_withdrawn_input(session: Session, dataset_version_id: int) -> WithdrawnInput | None:
    """Return the nearest upstream version that was retracted or rejected, or None."""
    seen, level = {dataset_version_id}, [dataset_version_id]
    for _ in range(MAX_LEVELS):
        rows = [row for row in _read_by(session, level) if row.version_id not in seen]
        withdrawn = [row for row in rows if row.state in WITHDRAWN]
        if withdrawn:
            row = min(withdrawn, key=lambda version: version.version_id)
            event = describe_state(session, get_version_by_id(session, row.version_id))
            return WithdrawnInput(row.full_name, row.name, row.version_tag, row.state, event)
        level = list(dict.fromkeys(row.version_id for row in rows))
        seen |= set(level)
        if not level:
            return None
    return None


def list_derived_versions(
    session: Session, dataset_version_id: int, *, limit: int = MAX_RESULTS
) -> list[DerivedVersion]:
    """Return the readable versions that were created from a version, nearest first.

    Retracted and rejected versions are not listed, but those created from them are.
    """
    seen, level = {dataset_version_id}, [dataset_version_id]
    derived: list[DerivedVersion] = []
    for depth in range(1, MAX_LEVELS + 1):
        rows = {
            row.dataset_version_id: row
            for row in _created_from(session, level)
            if row.dataset_version_id not in seen
        }
        derived += [
            DerivedVersion(**row._mapping, depth=depth)
            for row in sorted(
                rows.values(), key=lambda version: (version.name, version.version_tag)
            )
            if row.state in (READY, SUPERSEDED)
        ]
        seen |= set(rows)
        level = list(rows)
        if not level or len(derived) >= limit:
            break
    return derived[:limit]


def _read_by(session: Session, versions: Sequence[int]) -> Iterator[Any]:
    """Yield the versions that were read by the runs that created these versions."""
    output, input_ = aliased(DatasetVersion), aliased(DatasetVersion)
    for batch in _batches(versions):
        yield from session.execute(
            select(
                input_.dataset_version_id.label("version_id"),
                Dataset.full_name,
                Dataset.name,
                input_.version_tag,
                input_.state,
            )
            .select_from(output)
            .join(ProcessRun, ProcessRun.run_uuid == output.produced_by_run_id)
            .join(RunInput, RunInput.run_id == ProcessRun.run_id)
            .join(input_, input_.dataset_version_id == RunInput.dataset_version_id)
            .join(Dataset, Dataset.dataset_id == input_.dataset_id)
            .where(output.dataset_version_id.in_(batch))
        )


def _created_from(session: Session, versions: Sequence[int]) -> Iterator[Any]:
    """Yield the versions created by runs that read one of these."""
    for batch in _batches(versions):
        yield from session.execute(
            select(
                DatasetVersion.dataset_version_id,
                Dataset.full_name,
                Dataset.name,
                DatasetVersion.version_tag,
                DatasetVersion.business_date,
                DatasetVersion.state,
                Dataset.owner_team,
                Dataset.owner_email,
                Process.process_key,
                ProcessRun.run_uuid,
            )
            .select_from(RunInput)
            .join(ProcessRun, ProcessRun.run_id == RunInput.run_id)
            .join(Process, Process.process_id == ProcessRun.process_id)
            .join(DatasetVersion, DatasetVersion.produced_by_run_id == ProcessRun.run_uuid)
            .join(Dataset, Dataset.dataset_id == DatasetVersion.dataset_id)
            .where(RunInput.dataset_version_id.in_(batch))
        )


def _batches(values: Iterable[int]) -> Iterator[Sequence[int]]:
    listed = list(values)
    for start in range(0, len(listed), BATCH):
        yield listed[start : start + BATCH]
