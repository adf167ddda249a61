"""Impact: what and who is affected when a dataset is late, wrong or about to change."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from floe.catalog.edges import DATASET, PROCESS, Node
from floe.catalog.lineage import LineageNode, walk_lineage
from floe.catalog.stores import store_of
from floe.catalog.tables import Dataset, Process, Sla

# Deep enough for any real chain: a walk ends where the graph does.
WHOLE_GRAPH = 1000


@dataclass(frozen=True)
class DepthCount:
    """How much is affected at one distance."""

    depth: int
    datasets: int
    processes: int


@dataclass(frozen=True)
class TeamImpact:
    """A team that owns something affected, and how to reach it."""

    team: str
    emails: tuple[str, ...]
    datasets: int
    processes: int


@dataclass(frozen=True)
class SlaImpact:
    """A promise in danger, and the dataset or process that it is about."""

    sla_id: int
    name: str
    due: str | None
    zone: str | None
    window_sec: int | None
    node: Node
    key: str


@dataclass(frozen=True)
class Impact:
    """Everything downstream of a dataset, the nearest first."""

    datasets: Sequence[LineageNode]
    processes: Sequence[LineageNode]
    by_depth: Sequence[DepthCount]
    teams: Sequence[TeamImpact]
    slas: Sequence[SlaImpact]
    truncated: bool


class _Stake(NamedTuple):
    """Whose a node is, and what is promised of it."""

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
    """Return what depends on a dataset, directly or not, and whose it is."""
    found = walk_lineage(session, Node(DATASET, dataset_id), "downstream", depth)
    affected = found.nodes[1:]
    datasets = [node for node in affected if node.type == DATASET]
    processes = [node for node in affected if node.type == PROCESS]
    stakes = [*_dataset_stakes(session, datasets), *_process_stakes(session, processes)]
    return Impact(
        datasets=datasets,
        processes=processes,
        by_depth=_count_by_depth(affected),
        teams=_group_by_team(stakes),
        slas=_list_slas(stakes),
        truncated=found.truncated,
    )


def _dataset_stakes(session: Session, nodes: Iterable[LineageNode]) -> list[_Stake]:
    of = Dataset.__table__.c
    owner = (of.dataset_id, of.full_name, of.owner_team, of.owner_email)
    return _stakes(session, DATASET, nodes, owner, of.default_sla_id)


def _process_stakes(session: Session, nodes: Iterable[LineageNode]) -> list[_Stake]:
    of = Process.__table__.c
    owner = (of.process_id, of.process_key, of.team, of.owner_email)
    return _stakes(session, PROCESS, nodes, owner, of.sla_id)


def _stakes(
    session: Session, node_type: str, nodes: Iterable[LineageNode], owner: Any, sla_id: Any
) -> list[_Stake]:
    ids = [node.id for node in nodes]
    promise = (Sla.sla_id, Sla.name, Sla.due, Sla.zone, Sla.sla_window_sec)
    rows: Any = session.execute(
        select(*owner, *promise)
        .join(Sla, Sla.sla_id == sla_id, isouter=True)
        .where(store_of(session).among(owner[0], ids))
        .order_by(owner[1])
    )
    return [_Stake(Node(node_type, number), *rest) for number, *rest in rows]


def _count_by_depth(nodes: Iterable[LineageNode]) -> list[DepthCount]:
    counts = Counter((node.depth, node.type) for node in nodes)
    depths = sorted({depth for depth, _ in counts})
    return [DepthCount(depth, counts[depth, DATASET], counts[depth, PROCESS]) for depth in depths]


def _group_by_team(stakes: Iterable[_Stake]) -> list[TeamImpact]:
    teams: dict[str, list[_Stake]] = defaultdict(list)
    for stake in stakes:
        if stake.team:
            teams[stake.team].append(stake)
    return [_team(team, owned) for team, owned in sorted(teams.items())]


def _team(team: str, owned: Sequence[_Stake]) -> TeamImpact:
    emails = sorted({stake.email for stake in owned if stake.email})
    counts = Counter(stake.node.type for stake in owned)
    return TeamImpact(team, tuple(emails), counts[DATASET], counts[PROCESS])


def _list_slas(stakes: Iterable[_Stake]) -> list[SlaImpact]:
    return [
        SlaImpact(one.sla_id, one.sla, one.due, one.zone, one.window_sec, one.node, one.key)
        for one in stakes
        if one.sla_id is not None
    ]
