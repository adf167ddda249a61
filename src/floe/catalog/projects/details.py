"""What hangs on datasets and processes: promises, tags and checks, many at once."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.checks import new_check
from floe.catalog.projects import declarations
from floe.catalog.projects.reading import rows_by_name
from floe.catalog.rows import apply_fields
from floe.catalog.slas import SlaFields
from floe.catalog.stores import store_of
from floe.catalog.tables import DatasetTag, QualityCheckDef, Sla
from floe.spec import AnyCheck


def put_slas(session: Session, promises: Mapping[str, SlaFields | None]) -> dict[str, int]:
    """Make these promises known under their names; return their numbers by name."""
    wanted = {name: fields for name, fields in promises.items() if fields is not None}
    rows = rows_by_name(session, Sla, Sla.name, wanted)
    for name, fields in wanted.items():
        if name in rows:
            apply_fields(rows[name], fields)
        else:
            rows[name] = Sla(name=name, created_at=clock.now(), **fields)
            session.add(rows[name])
    session.flush()
    return {name: row.sla_id for name, row in rows.items()}


def put_tags(session: Session, tags: Mapping[int, set[str]]) -> list[int]:
    """Give each dataset exactly these tags; return the datasets whose tags changed."""
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
    return changed


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


def put_checks(session: Session, checks: Mapping[int, Iterable[AnyCheck]]) -> list[int]:
    """Make these the checks of each dataset; return the datasets whose checks changed."""
    current = _current_checks(session, list(checks))
    return [
        number
        for number, declared in checks.items()
        if _put_checks_of(session, number, current[number], declared)
    ]


def _put_checks_of(
    session: Session,
    dataset_id: int,
    current: Mapping[str, QualityCheckDef],
    declared: Iterable[AnyCheck],
) -> bool:
    wanted = dict(map(declarations.check_fields, declared))
    new = [name for name in wanted if name not in current]
    session.add_all(new_check(dataset_id, name, **wanted[name]) for name in new)
    # A check that vanished stays for its results, and is no longer run.
    changed = [
        name
        for name, row in current.items()
        if apply_fields(row, wanted.get(name, {"active": False}))
    ]
    return bool(new or changed)


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
