"""What hangs on datasets and processes: promises, tags and checks, many at once."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.checks import new_check
from floe.catalog.projects import declarations
from floe.catalog.projects.reading import rows_by_name
from floe.catalog.projects.scope import Scope
from floe.catalog.rows import Difference, change_fields
from floe.catalog.slas import SlaFields
from floe.catalog.stores import store_of
from floe.catalog.tables import DatasetTag, QualityCheckDef, Sla
from floe.spec import AnyCheck


def put_slas(scope: Scope, promises: Mapping[str, SlaFields | None]) -> dict[str, int]:
    """Make these promises known under their names; return their numbers by name."""
    wanted = {name: fields for name, fields in promises.items() if fields is not None}
    rows = rows_by_name(scope.session, Sla, Sla.name, wanted)
    for name, fields in wanted.items():
        if name not in rows:
            # Of a new one, the dataset or process that makes the promise tells.
            rows[name] = Sla(name=name, created_at=clock.now(), **fields)
            scope.session.add(rows[name])
        elif change := change_fields(rows[name], fields):
            scope.note("update", "sla", name, change)
    scope.session.flush()
    return {name: row.sla_id for name, row in rows.items()}


def put_tags(session: Session, tags: Mapping[int, set[str]]) -> dict[int, set[str]]:
    """Give each dataset exactly these tags; return what they were where they changed."""
    current = _current_tags(session, list(tags))
    changed = [number for number, wanted in tags.items() if wanted != current[number]]
    for number in changed:
        if gone := current[number] - tags[number]:
            of_dataset = DatasetTag.dataset_id == number
            session.execute(delete(DatasetTag).where(of_dataset, DatasetTag.tag.in_(sorted(gone))))
    added = [
        {"dataset_id": number, "tag": tag}
        for number in changed
        for tag in sorted(tags[number] - current[number])
    ]
    if added:
        session.execute(insert(DatasetTag), added)
    return {number: current[number] for number in changed}


def _current_tags(session: Session, dataset_ids: Sequence[int]) -> defaultdict[int, set[str]]:
    column = DatasetTag.__table__.c.dataset_id
    rows = session.execute(
        select(DatasetTag.dataset_id, DatasetTag.tag).where(
            store_of(session).among(column, dataset_ids)
        )
    )
    current: defaultdict[int, set[str]] = defaultdict(set)
    for number, tag in rows:
        current[number].add(tag)
    return current


def put_checks(session: Session, checks: Mapping[int, Iterable[AnyCheck]]) -> dict[int, Difference]:
    """Make these the checks of each dataset; return by name those that changed."""
    current = _current_checks(session, list(checks))
    changes = {
        number: _put_checks_of(session, number, current[number], declared)
        for number, declared in checks.items()
    }
    return {number: change for number, change in changes.items() if change}


def _put_checks_of(
    session: Session,
    dataset_id: int,
    current: Mapping[str, QualityCheckDef],
    declared: Iterable[AnyCheck],
) -> Difference:
    wanted, difference = dict(map(declarations.check_fields, declared)), Difference()
    for name, fields in wanted.items():
        if name not in current:
            session.add(new_check(dataset_id, name, **fields))
            difference.add(name, None, fields)
    for name, row in current.items():
        # A check that vanished stays for its results, and is no longer run.
        if change := change_fields(row, wanted.get(name, {"active": False})):
            difference.add(name, change.before, change.after)
    return difference


def _current_checks(
    session: Session, dataset_ids: Sequence[int]
) -> defaultdict[int, dict[str, QualityCheckDef]]:
    column = QualityCheckDef.__table__.c.dataset_id
    rows = session.scalars(
        select(QualityCheckDef).where(store_of(session).among(column, dataset_ids))
    )
    current: defaultdict[int, dict[str, QualityCheckDef]] = defaultdict(dict)
    for row in rows:
        current[row.dataset_id][row.name] = row
    return current
