"""Join datasets that events name as symlinks, before other writes.

An event joins two datasets only when at most one of them is declared, curated or written by floe,
and never two that a steward has split. Otherwise both stay, and the claim is recorded as drift.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.datasets import ACTIVE, new_dataset
from floe.catalog.drift import OPEN
from floe.catalog.joins.joining import SAME_DATASET, is_managed, join_all, rank
from floe.catalog.queries import batches
from floe.catalog.recording.claims import EventClaim
from floe.catalog.recording.name_ids import OBSERVED_BY
from floe.catalog.recording.transaction import RecorderCache
from floe.catalog.stores import Store, store_of
from floe.catalog.tables import Dataset, DatasetAlias, DatasetJoin, DriftClaim
from floe.spec.dates import DEFAULT_RULES, DateRules
from floe.spec.identity import DatasetId

Name = tuple[str, str]
Link = tuple[Name, Name]


def link_names(
    connection: Connection,
    store: Store,
    cache: RecorderCache,
    claims: Sequence[EventClaim],
    dates: DateRules = DEFAULT_RULES,
) -> None:
    """Turn each new symlink into an alias or a join, or record it as drift."""
    new: dict[Link, EventClaim] = {}
    for claim in claims:
        for dataset in claim.datasets:
            for other in dataset.symlinks:
                link = (dataset.namespace, dataset.name), other
                if other != link[0] and link not in cache.links:
                    new.setdefault(link, claim)
    if not new:
        return
    info = {"store": store}
    with Session(connection, info=info, join_transaction_mode="rollback_only") as session:
        _Linker(session, new, dates).link()
        session.flush()
    # Names may refer to other datasets now, so they are looked up again.
    cache.datasets.clear()
    cache.epoch.clear()
    for link in new:
        cache.links.put(link, True)


class _Linker:
    """Groups names of the same dataset (union-find), then writes everything at once."""

    def __init__(
        self, session: Session, links: Mapping[Link, EventClaim], dates: DateRules
    ) -> None:
        self._session, self._links, self._dates = session, links, dates
        self._datasets: dict[int, Dataset] = {}
        # Union-find: each name or dataset id has a parent; a root is its own parent.
        self._parents: dict[Name | int, Name | int] = {}
        self._split: set[frozenset[int]] = set()
        self._reasons: dict[Name | int, EventClaim] = {}

    def link(self) -> None:
        names = {name for link in self._links for name in link}
        stored = {name: self._without_date(name) for name in names}
        known = self._resolve(stored)
        self._split = self._list_split()
        for name in sorted(names):
            self._parents.setdefault(stored[name], stored[name])
            self._parents[name] = known.get(name, stored[name])
        for dataset_id in self._datasets:
            self._parents[dataset_id] = dataset_id
        rejected = [
            (*link, self._links[link]) for link in sorted(self._links) if not self._unite(*link)
        ]
        self._write({name: stored[name] for name in sorted(names - known.keys())})
        self._record_drift(rejected)

    def _without_date(self, name: Name) -> Name:
        dated = self._dates.fold(name[1])
        return (name[0], dated.name) if dated else name

    def _resolve(self, stored: Mapping[Name, Name]) -> dict[Name, int]:
        """Find the datasets of names as the recorder does: stored without the date.

        A name with a date that is declared, curated or an alias keeps its dataset.
        """
        by_name = self._look_up({*stored, *stored.values()})
        known = {name: by_name[other] for name, other in stored.items() if other in by_name}
        for name, other in stored.items():
            if name != other and name in by_name:
                dataset = self._datasets[by_name[name]]
                is_alias = dataset.full_name != DatasetId(*name).full_name
                if is_alias or is_managed(dataset):
                    known[name] = dataset.dataset_id
        return known

    def _look_up(self, names: Iterable[Name]) -> dict[Name, int]:
        """Look up dataset ids by full names, else by aliases."""
        by_full_name: dict[str, list[Name]] = {}
        for name in names:
            by_full_name.setdefault(DatasetId(*name).full_name, []).append(name)
        known: dict[Name, int] = {}
        for batch in batches(by_full_name):
            for dataset in self._session.scalars(
                select(Dataset).where(Dataset.full_name.in_(batch))
            ):
                self._datasets[dataset.dataset_id] = dataset
                for name in by_full_name[dataset.full_name]:
                    known[name] = dataset.dataset_id
        aliased = self._look_up_aliases({name for name in names if name not in known})
        missing = sorted(set(aliased.values()) - self._datasets.keys())
        among = store_of(self._session).among(Dataset.__table__.c.dataset_id, missing)
        for dataset in self._session.scalars(select(Dataset).where(among)) if missing else ():
            self._datasets[dataset.dataset_id] = dataset
        return {**aliased, **known}

    def _look_up_aliases(self, names: set[Name]) -> dict[Name, int]:
        known: dict[Name, int] = {}
        for batch in batches(sorted(names)):
            rows: Any = self._session.execute(
                select(DatasetAlias.namespace, DatasetAlias.name, DatasetAlias.dataset_id).where(
                    DatasetAlias.namespace.in_({namespace for namespace, _ in batch}),
                    DatasetAlias.name.in_({name for _, name in batch}),
                )
            )
            known |= {
                (namespace, name): dataset_id
                for namespace, name, dataset_id in rows
                if (namespace, name) in names
            }
        return known

    def _list_split(self) -> set[frozenset[int]]:
        """List pairs of datasets that a steward has split after a join."""
        if not self._datasets:
            return set()
        joins, dataset_ids = DatasetJoin.__table__.c, sorted(self._datasets)
        rows: Any = self._session.execute(
            select(joins.kept_id, joins.split_id).where(
                store_of(self._session).among(joins.split_id, dataset_ids)
            )
        )
        return {frozenset(pair) for pair in rows}

    def _root(self, node: Name | int) -> Name | int:
        while (parent := self._parents[node]) != node:
            self._parents[node] = self._parents[parent]
            node = parent
        return node

    def _unite(self, name: Name, other: Name) -> bool:
        """Make two names refer to one dataset; return False if an event may not do so."""
        first, second = self._root(name), self._root(other)
        if first == second:
            return True
        if isinstance(first, int) and isinstance(second, int):
            left, right = self._datasets[first], self._datasets[second]
            if (is_managed(left) and is_managed(right)) or self._is_split(first, second):
                return False
            if rank(right) < rank(left):
                first, second = second, first
        elif isinstance(second, int):
            first, second = second, first
        self._parents[second] = first
        self._reasons[second] = self._links[name, other]
        return True

    def _is_split(self, first: int, second: int) -> bool:
        pair = {first, second}
        return any(
            {self._root(dataset_id) for dataset_id in split} == pair for split in self._split
        )

    def _write(self, unknown: Mapping[Name, Name]) -> None:
        """Write aliases and joins; create a dataset where none of the names was known."""
        roots = {root for name in unknown if not isinstance(root := self._root(name), int)}
        created = {
            root: new_dataset(*root, status=ACTIVE, actor=OBSERVED_BY)
            for root in sorted(roots)
            if isinstance(root, tuple)
        }
        self._session.add_all(created.values())
        self._session.flush()
        now = clock.now()
        aliases = []
        for name, stored in unknown.items():
            root = self._root(name)
            if root != stored:
                dataset_id = root if isinstance(root, int) else created[root].dataset_id
                row = {"namespace": name[0], "name": name[1], "dataset_id": dataset_id}
                aliases.append({**row, "created_at": now})
        if aliases:
            store_of(self._session).upsert(
                self._session,
                DatasetAlias,
                aliases,
                key=("namespace", "name"),
                update=("dataset_id",),
            )
        self._join()

    def _join(self) -> None:
        pairs: dict[Dataset, Dataset] = {}
        for dataset_id, dataset in sorted(self._datasets.items()):
            root = self._root(dataset_id)
            if root != dataset_id and isinstance(root, int):
                pairs[dataset] = self._datasets[root]
        if pairs:
            reasons: dict[int, str | None] = {
                gone.dataset_id: f"symlink in {_origin(self._reasons[gone.dataset_id])}"
                for gone in pairs
            }
            join_all(self._session, pairs, actor=OBSERVED_BY, reasons=reasons)

    def _record_drift(self, rejected: Sequence[tuple[Name, Name, EventClaim]]) -> None:
        rows: dict[tuple[int, int], dict[str, Any]] = {}
        for name, other, claim in rejected:
            first, second = sorted(
                root for root in (self._root(name), self._root(other)) if isinstance(root, int)
            )
            detail = {"name": DatasetId(*name).full_name, "symlink": DatasetId(*other).full_name}
            rows[first, second] = {
                "kind": SAME_DATASET,
                "dataset_id": first,
                "subject_id": second,
                "status": OPEN,
                "first_seen": claim.at,
                "last_seen": claim.at,
                "detail_json": {**detail, "from": _origin(claim)},
            }
        if rows:
            store_of(self._session).upsert(
                self._session,
                DriftClaim,
                list(rows.values()),
                key=("kind", "dataset_id", "subject_id"),
                update=("last_seen", "detail_json"),
            )


def _origin(claim: EventClaim) -> str:
    job = f"an event of job {claim.process_key}" if claim.process_key else "an event"
    return f"{job}, run {claim.run.run_uuid}" if claim.run else job
