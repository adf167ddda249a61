"""Symlinks: two names of one dataset become one, before anything is written under either.

An event joins two datasets only when at most one of them is declared, curated or written by floe,
and never two that a steward has split. Otherwise both stay, and the claim is kept as drift.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.datasets import ACTIVE, new_dataset
from floe.catalog.drift_claims import OPEN
from floe.catalog.joining import SAME_DATASET, is_settled, join_all, rank
from floe.catalog.recording.claims import EventClaim
from floe.catalog.recording.memory import Memory
from floe.catalog.recording.names import OBSERVED_BY
from floe.catalog.rows import batches
from floe.catalog.stores import Store, store_of
from floe.catalog.tables import Dataset, DatasetAlias, DatasetJoin, DriftClaim
from floe.spec.dates import DEFAULT_RULES, DateRules
from floe.spec.identity import DatasetId

Name = tuple[str, str]
Link = tuple[Name, Name]


def link_names(
    connection: Connection,
    store: Store,
    memory: Memory,
    claims: Sequence[EventClaim],
    dates: DateRules = DEFAULT_RULES,
) -> None:
    """Make every symlink that is not known yet an alias, join what it names, or note drift."""
    new: dict[Link, EventClaim] = {}
    for claim in claims:
        for dataset in claim.datasets:
            for other in dataset.symlinks:
                link = (dataset.namespace, dataset.name), other
                if other != link[0] and link not in memory.links:
                    new.setdefault(link, claim)
    if not new:
        return
    info = {"store": store}
    with Session(connection, info=info, join_transaction_mode="rollback_only") as session:
        _Linker(session, new, dates).link()
        session.flush()
    # Names may mean other datasets now: they are looked up again.
    memory.datasets.forget()
    memory.epoch.forget()
    for link in new:
        memory.links.put(link, True)


class _Linker:
    """Works out which names mean one dataset, then writes all of it at once."""

    def __init__(
        self, session: Session, links: Mapping[Link, EventClaim], dates: DateRules
    ) -> None:
        self._session, self._links, self._dates = session, links, dates
        self._datasets: dict[int, Dataset] = {}
        # Each name or dataset stands below another of the same kind, or is the top of its own.
        self._above: dict[Name | int, Name | int] = {}
        self._split: set[frozenset[int]] = set()
        self._reasons: dict[Name | int, EventClaim] = {}

    def link(self) -> None:
        names = {name for link in self._links for name in link}
        stored = {name: self._without_date(name) for name in names}
        known = self._resolve(stored)
        self._split = self._list_split()
        for name in sorted(names):
            self._above.setdefault(stored[name], stored[name])
            self._above[name] = known.get(name, stored[name])
        for number in self._datasets:
            self._above[number] = number
        refused = [
            (*link, self._links[link]) for link in sorted(self._links) if not self._unite(*link)
        ]
        self._write({name: stored[name] for name in sorted(names - known.keys())})
        self._note_drift(refused)

    def _without_date(self, name: Name) -> Name:
        dated = self._dates.fold(name[1])
        return (name[0], dated.name) if dated else name

    def _resolve(self, stored: Mapping[Name, Name]) -> dict[Name, int]:
        """Find the datasets of names as events do: one with a date in it is stored without.

        A name with a date that is declared, curated or an alias keeps its dataset.
        """
        found = self._look_up({*stored, *stored.values()})
        known = {name: found[other] for name, other in stored.items() if other in found}
        for name, other in stored.items():
            if name != other and name in found:
                dataset = self._datasets[found[name]]
                is_alias = dataset.full_name != DatasetId(*name).full_name
                if is_alias or is_settled(dataset):
                    known[name] = dataset.dataset_id
        return known

    def _look_up(self, names: Iterable[Name]) -> dict[Name, int]:
        """Find the datasets that names mean: by their full names, else by their aliases."""
        by_full_name: dict[str, list[Name]] = {}
        for name in names:
            by_full_name.setdefault(DatasetId(*name).full_name, []).append(name)
        known: dict[Name, int] = {}
        for some in batches(by_full_name):
            for dataset in self._session.scalars(
                select(Dataset).where(Dataset.full_name.in_(some))
            ):
                self._datasets[dataset.dataset_id] = dataset
                for name in by_full_name[dataset.full_name]:
                    known[name] = dataset.dataset_id
        aliased = self._look_up_aliases({name for name in names if name not in known})
        unseen = sorted(set(aliased.values()) - self._datasets.keys())
        among = store_of(self._session).among(Dataset.__table__.c.dataset_id, unseen)
        for dataset in self._session.scalars(select(Dataset).where(among)) if unseen else ():
            self._datasets[dataset.dataset_id] = dataset
        return {**aliased, **known}

    def _look_up_aliases(self, names: set[Name]) -> dict[Name, int]:
        known: dict[Name, int] = {}
        for some in batches(sorted(names)):
            rows: Any = self._session.execute(
                select(DatasetAlias.namespace, DatasetAlias.name, DatasetAlias.dataset_id).where(
                    DatasetAlias.namespace.in_({namespace for namespace, _ in some}),
                    DatasetAlias.name.in_({name for _, name in some}),
                )
            )
            known |= {
                (namespace, name): number
                for namespace, name, number in rows
                if (namespace, name) in names
            }
        return known

    def _list_split(self) -> set[frozenset[int]]:
        """List the datasets that were joined once and split again by a steward."""
        if not self._datasets:
            return set()
        joins, numbers = DatasetJoin.__table__.c, sorted(self._datasets)
        rows: Any = self._session.execute(
            select(joins.kept_id, joins.split_id).where(
                store_of(self._session).among(joins.split_id, numbers)
            )
        )
        return {frozenset(pair) for pair in rows}

    def _top(self, node: Name | int) -> Name | int:
        while (above := self._above[node]) != node:
            self._above[node] = self._above[above]
            node = above
        return node

    def _unite(self, name: Name, other: Name) -> bool:
        """Let two names mean one dataset; False where an event may not say so."""
        first, second = self._top(name), self._top(other)
        if first == second:
            return True
        if isinstance(first, int) and isinstance(second, int):
            one, two = self._datasets[first], self._datasets[second]
            if (is_settled(one) and is_settled(two)) or self._is_split(first, second):
                return False
            if rank(two) < rank(one):
                first, second = second, first
        elif isinstance(second, int):
            first, second = second, first
        self._above[second] = first
        self._reasons[second] = self._links[name, other]
        return True

    def _is_split(self, first: int, second: int) -> bool:
        pair = {first, second}
        return any({self._top(number) for number in split} == pair for split in self._split)

    def _write(self, unknown: Mapping[Name, Name]) -> None:
        """Write aliases and joins, and a dataset for names of which none was known."""
        tops = {top for name in unknown if not isinstance(top := self._top(name), int)}
        made = {
            top: new_dataset(*top, status=ACTIVE, actor=OBSERVED_BY)
            for top in sorted(tops)
            if isinstance(top, tuple)
        }
        self._session.add_all(made.values())
        self._session.flush()
        now = clock.now()
        aliases = []
        for name, stored in unknown.items():
            top = self._top(name)
            if top != stored:
                number = top if isinstance(top, int) else made[top].dataset_id
                row = {"namespace": name[0], "name": name[1], "dataset_id": number}
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
        for number, dataset in sorted(self._datasets.items()):
            top = self._top(number)
            if top != number and isinstance(top, int):
                pairs[dataset] = self._datasets[top]
        if pairs:
            reasons: dict[int, str | None] = {
                gone.dataset_id: f"symlink in {_origin(self._reasons[gone.dataset_id])}"
                for gone in pairs
            }
            join_all(self._session, pairs, actor=OBSERVED_BY, reasons=reasons)

    def _note_drift(self, refused: Sequence[tuple[Name, Name, EventClaim]]) -> None:
        rows: dict[tuple[int, int], dict[str, Any]] = {}
        for name, other, claim in refused:
            first, second = sorted(
                top for top in (self._top(name), self._top(other)) if isinstance(top, int)
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
