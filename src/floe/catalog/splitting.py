"""Split a dataset off again that was joined to another: the undo of `joining`.

What was there at the join goes back to where it was: versions with their tags and states, edges,
schemas, tags, checks, aliases and history. What came after the join stays with the dataset that
stayed; from the split on, what comes under the other name goes to the other dataset again.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.audit import record_audit
from floe.catalog.datasets import get_dataset, record_dataset_event
from floe.catalog.errors import DatasetExistsError, NotFoundError, WrongStateError
from floe.catalog.joining import (
    CHECK_REFERENCES,
    LIVE,
    PLACES,
    VERSION_REFERENCES,
    Place,
    bump_names_epoch,
)
from floe.catalog.rows import key_names, thaw_row
from floe.catalog.search.documents import index_datasets
from floe.catalog.tables import (
    Dataset,
    DatasetAlias,
    DatasetJoin,
    DatasetVersion,
    ObservedFacet,
    QualityCheckDef,
    Table,
)
from floe.catalog.versions import EXTERNAL, READY, SUPERSEDED, WRITTEN
from floe.errors import FloeError

# Databases take only so many conditions in one statement.
ROWS_AT_ONCE = 200


class JoinNotFoundError(NotFoundError):
    """No dataset of this name was joined to another."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"No dataset named '{name}' was joined to another, or the join was undone already. "
            "Give the full name that became an alias; floe dataset NAME lists the aliases."
        )


class LaterJoinError(WrongStateError):
    """Another dataset was joined to the same one later, which has to be undone first."""

    def __init__(self, name: str, later: str) -> None:
        FloeError.__init__(
            self,
            f"'{later}' was joined to the same dataset after '{name}', so that the two cannot be "
            f"told apart exactly. Undo that join first: floe catalog split '{later}'",
        )


def split_dataset(
    session: Session, name: str, *, actor: str, reason: str | None = None
) -> tuple[Dataset, Dataset]:
    """Undo the join of a dataset, by its full name; return it, and the one it was joined to."""
    join = _find_join(session, name)
    kept = get_dataset(session, join.kept_id)
    journal: dict[str, Any] = join.moved_json
    restored = _restore_dataset(session, journal["dataset"])
    _Undo(session, kept.dataset_id, restored.dataset_id, journal).run()
    kept.floe_writes = journal["kept_floe_writes"]
    now = clock.now()
    join.split_id, join.split_at, join.split_by = restored.dataset_id, now, actor
    for dataset, other in ((kept, restored), (restored, kept)):
        detail = {"from": other.full_name}
        record_dataset_event(session, dataset.dataset_id, "SPLIT", actor, detail)
    record_audit(
        session,
        actor,
        "dataset.split",
        "DATASET",
        kept.full_name,
        before={"dataset": kept.full_name, "alias": restored.full_name},
        after={"datasets": [kept.full_name, restored.full_name]},
        reason=reason,
    )
    bump_names_epoch(session)
    index_datasets(session, [kept.dataset_id, restored.dataset_id])
    return restored, kept


def _find_join(session: Session, name: str) -> DatasetJoin:
    still_joined = DatasetJoin.split_at.is_(None)
    newest = DatasetJoin.join_id.desc()
    join = session.scalars(
        select(DatasetJoin)
        .where(DatasetJoin.gone_name == name, still_joined)
        .order_by(newest)
        .limit(1)
    ).first()
    if join is None:
        raise JoinNotFoundError(name)
    later = session.scalars(
        select(DatasetJoin.gone_name)
        .where(DatasetJoin.kept_id == join.kept_id, DatasetJoin.join_id > join.join_id)
        .where(still_joined)
        .order_by(newest)
        .limit(1)
    ).first()
    if later is not None:
        raise LaterJoinError(name, later)
    return join


def _restore_dataset(session: Session, frozen: Mapping[str, Any]) -> Dataset:
    values = thaw_row(Dataset, frozen)
    # The database gives numbers; the one it had may not be given by hand.
    del values["dataset_id"]
    taken = select(Dataset.dataset_id).where(Dataset.full_name == values["full_name"])
    if session.scalar(taken) is not None:
        raise DatasetExistsError(values["full_name"])
    alias = session.get(DatasetAlias, (values["namespace"], values["name"]))
    if alias is not None:
        session.delete(alias)
    dataset = Dataset(**values)
    session.add(dataset)
    session.flush()
    return dataset


class _Undo:
    """Moves back what one join moved."""

    def __init__(
        self, session: Session, kept: int, restored: int, journal: Mapping[str, Any]
    ) -> None:
        self._session, self._kept, self._restored = session, kept, restored
        self._journal = journal

    def run(self) -> None:
        self._return_versions()
        self._return_checks()
        # The last place first: a column edge of the dataset with itself was moved twice.
        for place in reversed(PLACES):
            self._return_rows(place)
            self._separate_rows(place)
        self._restore_dropped(DatasetVersion, "dataset_version_id", VERSION_REFERENCES)
        self._restore_dropped(QualityCheckDef, "qdef_id", CHECK_REFERENCES)
        self._session.flush()

    def _return_rows(self, place: Place) -> None:
        gone = self._journal["dataset"]["dataset_id"]
        numbers = [name.endswith("dataset_id") for name in place.key]
        keys = [
            [
                self._restored if is_number and value == gone else value
                for is_number, value in zip(numbers, key, strict=True)
            ]
            for key in self._journal["moved"].get(place.name, ())
        ]
        for row in self._find(place.table, place.key, keys, place.column):
            setattr(row, place.column, self._restored)
        self._session.flush()

    def _separate_rows(self, place: Place) -> None:
        """Make rows again that were merged, and take their part out of what they were merged to."""
        merged = self._journal["merged"].get(place.name, ())
        names = key_names(place.table)
        own_number = len(names) == 1 and names[0] != place.column
        twins = {
            tuple(getattr(row, name) for name in names): row
            for row in self._find(
                place.table, names, [[one["twin"][name] for name in names] for one in merged]
            )
        }
        for one in merged:
            before, gone = thaw_row(place.table, one["twin"]), thaw_row(place.table, one["row"])
            twin = twins.get(tuple(before[name] for name in names))
            if twin is not None:
                _take_out(twin, before, gone)
            if own_number:
                del gone[names[0]]
            self._session.add(place.table(**{**gone, place.column: self._restored}))
        self._session.flush()

    def _find(
        self,
        table: type[Table],
        names: Iterable[str],
        keys: Iterable[list[Any]],
        column: str | None = None,
    ) -> list[Any]:
        """Load rows by their keys; with a column, those that name the kept dataset there."""
        names, keys = list(names), list(keys)
        rows: list[Any] = []
        for start in range(0, len(keys), ROWS_AT_ONCE):
            some = [
                dict(zip(names, key, strict=True)) for key in keys[start : start + ROWS_AT_ONCE]
            ]
            wanted = [
                and_(*(getattr(table, name) == value for name, value in key.items()))
                for key in some
            ]
            query = select(table).where(or_(*wanted))
            if column is not None:
                query = query.where(getattr(table, column) == self._kept)
            rows += self._session.scalars(query).all()
        return rows

    def _return_versions(self) -> None:
        session, journal = self._session, self._journal
        moved = {one["id"]: one for one in journal["versions"]}
        numbers = [*moved, *(one["id"] for one in journal["kept_versions"])]
        rows = self._find(DatasetVersion, ["dataset_version_id"], [[n] for n in numbers])
        versions = {row.dataset_version_id: row for row in rows}
        left = []
        for number, before in moved.items():
            row = versions.get(number)
            if row is None:
                continue
            left.append((row.business_date, row.partition_key))
            row.dataset_id = self._restored
            row.version_tag, row.seq = before["tag"], before["seq"]
            # A state that a person or a check has set since stays.
            both_live = row.state in LIVE and before["state"] in LIVE
            if both_live or row.state in (WRITTEN, EXTERNAL):
                row.state = before["state"]
        for before in journal["kept_versions"]:
            row = versions.get(before["id"])
            if row is not None and row.state in LIVE:
                row.state = before["state"]
        session.flush()
        self._settle(left)

    def _settle(self, dates: Iterable[tuple[Any, Any]]) -> None:
        """Leave one READY version for each date of the kept dataset that lost one.

        A newer one may have come since the join, and another join may hold the one before.
        """
        wanted = set(dates)
        rows = self._session.scalars(
            select(DatasetVersion).where(
                DatasetVersion.dataset_id == self._kept, DatasetVersion.state.in_(LIVE)
            )
        )
        live = defaultdict(list)
        for row in rows:
            if (row.business_date, row.partition_key) in wanted:
                live[row.business_date, row.partition_key].append(row)
        for same_date in live.values():
            ready = [row for row in same_date if row.state == READY] or same_date
            newest = max(ready, key=lambda row: (row.produced_at, row.produced_by_run_id or ""))
            for row in same_date:
                row.state = READY if row is newest else SUPERSEDED
        self._session.flush()

    def _return_checks(self) -> None:
        keys = [[number] for number in self._journal["checks"]]
        for row in self._find(QualityCheckDef, ["qdef_id"], keys, "dataset_id"):
            row.dataset_id = self._restored
        self._session.flush()

    def _restore_dropped(
        self, table: type[Table], number: str, references: Iterable[type[Table]]
    ) -> None:
        """Make a version or check again that both had, and give back what named it."""
        for one in self._journal["dropped"].get(number, ()):
            values = thaw_row(table, one["row"])
            del values[number]
            row = table(**{**values, "dataset_id": self._restored})
            self._session.add(row)
            self._session.flush()
            for reference in references:
                keys = one["named_by"].get(reference.__tablename__, ())
                key = key_names(reference)
                if reference.__tablename__ == "run_input":
                    keys = [[run, self._restored, tag] for run, _, tag in keys]
                for naming in self._find(reference, key, keys):
                    setattr(naming, number, getattr(row, number))


def _take_out(twin: Any, before: Mapping[str, Any], gone: Mapping[str, Any]) -> None:
    """Undo a merge in the row that stayed, as far as nothing newer has come since."""
    if "first_seen" in before:
        if twin.first_seen == gone["first_seen"]:
            twin.first_seen = before["first_seen"]
        if twin.last_seen == gone["last_seen"]:
            twin.last_seen = before["last_seen"]
    if isinstance(twin, ObservedFacet) and twin.facet_hash == gone["facet_hash"]:
        twin.seen_at, twin.facet_hash = before["seen_at"], before["facet_hash"]
        twin.body = before["body"]
