"""Split two joined datasets: undo a join.

Everything that existed at the join is restored: versions with their tags and states, edges,
schemas, tags, checks, aliases and history. What was added after the join stays with the kept
dataset. From the split on, events for the other name go to the restored dataset.
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
from floe.catalog.joins.joining import LIVE, bump_names_epoch
from floe.catalog.joins.journal import (
    CHECK_REFERENCES,
    LINKS,
    VERSION_REFERENCES,
    Link,
    key_names,
    row_from_json,
)
from floe.catalog.search_index import index_datasets
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

# Databases limit the number of conditions in a statement.
ROWS_AT_ONCE = 200


class JoinNotFoundError(NotFoundError):
    """No open join of a dataset with this name exists."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"No join of a dataset named '{name}' was found, or it was undone already. "
            "Give the full name that became an alias. List the aliases with: floe dataset NAME"
        )


class LaterJoinError(WrongStateError):
    """A later join to the same dataset must be undone first."""

    def __init__(self, name: str, later: str) -> None:
        FloeError.__init__(
            self,
            f"'{later}' was joined to the same dataset after '{name}'. "
            f"Undo that join first: floe catalog split '{later}'",
        )


def split_dataset(
    session: Session, name: str, *, actor: str, reason: str | None = None
) -> tuple[Dataset, Dataset]:
    """Undo the join of a dataset; return it and the dataset it was joined to."""
    join = _find_join(session, name)
    kept = get_dataset(session, join.kept_id)
    journal: dict[str, Any] = join.moved_json
    restored = _restore_dataset(session, journal["dataset"])
    _JoinUndo(session, kept.dataset_id, restored.dataset_id, journal).run()
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


def _restore_dataset(session: Session, stored: Mapping[str, Any]) -> Dataset:
    values = row_from_json(Dataset, stored)
    # Only the database assigns ids: the old one cannot be reused.
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


class _JoinUndo:
    """Restores what one join changed."""

    def __init__(
        self, session: Session, kept: int, restored: int, journal: Mapping[str, Any]
    ) -> None:
        self._session, self._kept, self._restored = session, kept, restored
        self._journal = journal

    def run(self) -> None:
        self._return_versions()
        self._return_checks()
        # In reverse order: a column edge of the dataset to itself was moved twice.
        for link in reversed(LINKS):
            self._return_rows(link)
            self._separate_rows(link)
        self._restore_dropped(DatasetVersion, "dataset_version_id", VERSION_REFERENCES)
        self._restore_dropped(QualityCheckDef, "qdef_id", CHECK_REFERENCES)
        self._session.flush()

    def _return_rows(self, link: Link) -> None:
        gone = self._journal["dataset"]["dataset_id"]
        are_dataset_ids = [name.endswith("dataset_id") for name in link.key]
        keys = [
            [
                self._restored if is_dataset_id and value == gone else value
                for is_dataset_id, value in zip(are_dataset_ids, key, strict=True)
            ]
            for key in self._journal["moved"].get(link.name, ())
        ]
        for row in self._find(link.table, link.key, keys, link.column):
            setattr(row, link.column, self._restored)
        self._session.flush()

    def _separate_rows(self, link: Link) -> None:
        """Recreate merged rows, and undo the merge in the rows that they were merged into."""
        merged = self._journal["merged"].get(link.name, ())
        names = key_names(link.table)
        has_own_id = len(names) == 1 and names[0] != link.column
        twins = {
            tuple(getattr(row, name) for name in names): row
            for row in self._find(
                link.table, names, [[merge["twin"][name] for name in names] for merge in merged]
            )
        }
        for merge in merged:
            before, gone = (
                row_from_json(link.table, merge["twin"]),
                row_from_json(link.table, merge["row"]),
            )
            twin = twins.get(tuple(before[name] for name in names))
            if twin is not None:
                _take_out(twin, before, gone)
            if has_own_id:
                del gone[names[0]]
            self._session.add(link.table(**{**gone, link.column: self._restored}))
        self._session.flush()

    def _find(
        self,
        table: type[Table],
        names: Iterable[str],
        keys: Iterable[list[Any]],
        column: str | None = None,
    ) -> list[Any]:
        """Load rows by their keys; with `column`, only those of the kept dataset."""
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
        moved = {entry["id"]: entry for entry in journal["versions"]}
        version_ids = [*moved, *(entry["id"] for entry in journal["kept_versions"])]
        rows = self._find(DatasetVersion, ["dataset_version_id"], [[n] for n in version_ids])
        versions = {row.dataset_version_id: row for row in rows}
        moved_dates = []
        for version_id, before in moved.items():
            row = versions.get(version_id)
            if row is None:
                continue
            moved_dates.append((row.business_date, row.partition_key))
            row.dataset_id = self._restored
            row.version_tag, row.seq = before["tag"], before["seq"]
            # Keep a state that a person or a check has set since.
            both_live = row.state in LIVE and before["state"] in LIVE
            if both_live or row.state in (WRITTEN, EXTERNAL):
                row.state = before["state"]
        for before in journal["kept_versions"]:
            row = versions.get(before["id"])
            if row is not None and row.state in LIVE:
                row.state = before["state"]
        session.flush()
        self._choose_ready(moved_dates)

    def _choose_ready(self, dates: Iterable[tuple[Any, Any]]) -> None:
        """Make one version READY for each date of the kept dataset that lost a version.

        A newer version may have arrived since the join, and an earlier one from another join.
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
        keys = [[check_id] for check_id in self._journal["checks"]]
        for row in self._find(QualityCheckDef, ["qdef_id"], keys, "dataset_id"):
            row.dataset_id = self._restored
        self._session.flush()

    def _restore_dropped(
        self, table: type[Table], id_column: str, references: Iterable[type[Table]]
    ) -> None:
        """Recreate deleted versions or checks, and restore the references to them."""
        for dropped in self._journal["dropped"].get(id_column, ()):
            values = row_from_json(table, dropped["row"])
            del values[id_column]
            row = table(**{**values, "dataset_id": self._restored})
            self._session.add(row)
            self._session.flush()
            for reference in references:
                keys = dropped["named_by"].get(reference.__tablename__, ())
                key = key_names(reference)
                if reference.__tablename__ == "run_input":
                    keys = [[run, self._restored, tag] for run, _, tag in keys]
                for referring in self._find(reference, key, keys):
                    setattr(referring, id_column, getattr(row, id_column))


def _take_out(twin: Any, before: Mapping[str, Any], gone: Mapping[str, Any]) -> None:
    """Undo a merge in the kept row, unless the values have changed since."""
    if "first_seen" in before:
        if twin.first_seen == gone["first_seen"]:
            twin.first_seen = before["first_seen"]
        if twin.last_seen == gone["last_seen"]:
            twin.last_seen = before["last_seen"]
    if isinstance(twin, ObservedFacet) and twin.facet_hash == gone["facet_hash"]:
        twin.seen_at, twin.facet_hash = before["seen_at"], before["facet_hash"]
        twin.body = before["body"]
