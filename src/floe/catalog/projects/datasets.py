"""Register the datasets of a project: create, rename, update or deprecate them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from floe.catalog.audit import Difference, change_fields, without_none
from floe.catalog.checks import new_check
from floe.catalog.datasets import (
    ACTIVE,
    DEPRECATED,
    DatasetFields,
    add_alias,
    create_dataset,
    new_dataset,
    record_dataset_event,
    rename_dataset,
    set_status,
)
from floe.catalog.errors import OwnedElsewhereError
from floe.catalog.joins.joining import bump_names_epoch
from floe.catalog.projects import declarations
from floe.catalog.projects.declarations import dataset_fields
from floe.catalog.projects.report import describe_changes
from floe.catalog.projects.scope import Scope, put_slas, rows_by_name
from floe.catalog.queries import batches
from floe.catalog.schemas import store_schemas
from floe.catalog.stores import store_of
from floe.catalog.tables import Dataset, DatasetAlias, DatasetTag, Project, QualityCheckDef
from floe.spec import AnyCheck, DatasetSpec, ProjectSpec
from floe.spec.identity import DatasetId

Changes = defaultdict[str, Difference]


def register_datasets(scope: Scope) -> dict[str, Dataset]:
    """Make the catalog's datasets match the project; return the declared ones by name."""
    changes: Changes = defaultdict(Difference)
    known = _rename(scope, _known(scope), changes)
    rows = {
        name: _put_dataset(scope, known.get(name), name, fields, changes)
        for name, fields in _fields(scope).items()
    }
    scope.session.flush()
    _remove_aliases(scope, set(rows) - set(known))
    _put_details(scope, rows, changes)
    _report_changes(scope, known, rows, changes)
    _deprecate(scope, {row.dataset_id for row in rows.values()})
    return rows


def _known(scope: Scope) -> dict[str, Dataset]:
    names = set(scope.spec.datasets)
    names |= {spec.renamed_from for spec in scope.spec.datasets.values() if spec.renamed_from}
    full_names = [scope.full_name(name) for name in names]
    rows = rows_by_name(scope.session, Dataset, Dataset.full_name, full_names)
    return {row.name: row for row in rows.values()}


def _rename(scope: Scope, known: dict[str, Dataset], changes: Changes) -> dict[str, Dataset]:
    for name, spec in scope.spec.datasets.items():
        before = spec.renamed_from
        if before in known and name not in known:
            row = known[name] = known.pop(before)
            _check_ownership(scope, row)
            rename_dataset(scope.session, row, name, actor=scope.actor)
            changes[name].add("name", before, name)
    return known


def _fields(scope: Scope) -> dict[str, DatasetFields]:
    """Return the column values of the declared datasets, by name."""
    specs = scope.spec.datasets
    declared = {name: spec for name, spec in specs.items() if spec.columns}
    columns = [declarations.dataset_columns(spec) for spec in declared.values()]
    hashes = dict(zip(declared, store_schemas(scope.session, columns), strict=True))
    slas = put_slas(
        scope,
        {
            f"dataset:{scope.full_name(name)}": declarations.dataset_sla(scope.spec, spec)
            for name, spec in specs.items()
        },
    )
    fields = {}
    for name, spec in specs.items():
        values = declarations.dataset_fields(scope.spec, spec)
        values["project_id"] = scope.project.project_id
        values["default_sla_id"] = slas.get(f"dataset:{scope.full_name(name)}")
        # Without a declared schema, keep the last observed one.
        if name in hashes:
            values["schema_hash"] = hashes[name]
        fields[name] = values
    return fields


def _put_dataset(
    scope: Scope, row: Dataset | None, name: str, fields: DatasetFields, changes: Changes
) -> Dataset:
    if row is None:
        row = new_dataset(scope.lake, name, status=ACTIVE, actor=scope.actor, **fields)
        scope.session.add(row)
        changes[name].after.update(without_none(fields), status=ACTIVE)
        return row
    _check_ownership(scope, row)
    changes[name].update(change_fields(row, fields))
    before = row.status
    if set_status(scope.session, row, ACTIVE, actor=scope.actor):
        changes[name].add("status", before, ACTIVE)
    return row


def _remove_aliases(scope: Scope, names: set[str]) -> None:
    """Remove aliases with the name of a new dataset, which events may have created."""
    aliases = DatasetAlias.__table__.c
    freed = 0
    for some in batches(sorted(names)):
        freed += scope.session.execute(
            delete(DatasetAlias).where(aliases.namespace == scope.lake, aliases.name.in_(some))
        ).rowcount  # type: ignore[attr-defined]
    if freed:
        bump_names_epoch(scope.session)


def _check_ownership(scope: Scope, row: Dataset) -> None:
    if row.project_id in (None, scope.project.project_id) or row.status == DEPRECATED:
        return
    owner = scope.session.get_one(Project, row.project_id)
    raise OwnedElsewhereError("Dataset", row.name, owner.name, scope.project.name)


def _put_details(scope: Scope, rows: dict[str, Dataset], changes: Changes) -> None:
    names_by_id = {row.dataset_id: name for name, row in rows.items()}
    specs = {dataset_id: scope.spec.datasets[name] for dataset_id, name in names_by_id.items()}
    tags = put_tags(scope.session, {n: set(spec.tags) for n, spec in specs.items()})
    for dataset_id, before in tags.items():
        changes[names_by_id[dataset_id]].add(
            "tags", sorted(before), sorted(set(specs[dataset_id].tags))
        )
    checks = put_checks(scope.session, {n: spec.checks for n, spec in specs.items()})
    for dataset_id, change in checks.items():
        changes[names_by_id[dataset_id]].add("checks", change.before, change.after)
    for dataset_id, spec in specs.items():
        for alias in spec.aliases:
            add_alias(scope.session, dataset_id, alias.namespace, alias.name)


def _report_changes(
    scope: Scope, known: dict[str, Dataset], rows: dict[str, Dataset], changes: Changes
) -> None:
    for name, row in rows.items():
        change = changes[name]
        if name not in known:
            scope.report.add("created", "dataset", name)
            scope.audit("create", "dataset", row.full_name, Difference(after=change.after))
            record_dataset_event(scope.session, row.dataset_id, "REGISTERED", scope.actor)
        elif change:
            changed = _changed_fields(change)
            scope.report.add("updated", "dataset", name, describe_changes(change))
            action = "rename" if "name" in change.after else "update"
            scope.audit(action, "dataset", row.full_name, change)
            detail = {"changed": sorted(changed)}
            record_dataset_event(scope.session, row.dataset_id, "UPDATED", scope.actor, detail)


def _changed_fields(change: Difference) -> list[str]:
    return [
        f"renamed from {change.before[column]}" if column == "name" else column
        for column in change.after
    ]


def _deprecate(scope: Scope, declared: set[int]) -> None:
    owned = scope.session.scalars(
        select(Dataset).where(
            Dataset.project_id == scope.project.project_id, Dataset.status != DEPRECATED
        )
    )
    for row in owned:
        # Datasets that code creates without a declaration are never deprecated here.
        if row.dataset_id not in declared and row.declaration_json is not None:
            change = Difference({"status": row.status}, {"status": DEPRECATED})
            set_status(scope.session, row, DEPRECATED, actor=scope.actor)
            scope.audit("deprecate", "dataset", row.full_name, change)
            scope.report.add("deprecated", "dataset", row.name)


def put_tags(session: Session, tags: Mapping[int, set[str]]) -> dict[int, set[str]]:
    """Set the tags of each dataset; return the previous tags of those that changed."""
    current = _current_tags(session, list(tags))
    changed = [dataset_id for dataset_id, wanted in tags.items() if wanted != current[dataset_id]]
    for dataset_id in changed:
        if gone := current[dataset_id] - tags[dataset_id]:
            of_dataset = DatasetTag.dataset_id == dataset_id
            session.execute(delete(DatasetTag).where(of_dataset, DatasetTag.tag.in_(sorted(gone))))
    added = [
        {"dataset_id": dataset_id, "tag": tag}
        for dataset_id in changed
        for tag in sorted(tags[dataset_id] - current[dataset_id])
    ]
    if added:
        session.execute(insert(DatasetTag), added)
    return {dataset_id: current[dataset_id] for dataset_id in changed}


def _current_tags(session: Session, dataset_ids: Sequence[int]) -> defaultdict[int, set[str]]:
    column = DatasetTag.__table__.c.dataset_id
    rows = session.execute(
        select(DatasetTag.dataset_id, DatasetTag.tag).where(
            store_of(session).among(column, dataset_ids)
        )
    )
    current: defaultdict[int, set[str]] = defaultdict(set)
    for dataset_id, tag in rows:
        current[dataset_id].add(tag)
    return current


def put_checks(session: Session, checks: Mapping[int, Iterable[AnyCheck]]) -> dict[int, Difference]:
    """Set the checks of each dataset; return the changes by dataset id."""
    current = _current_checks(session, list(checks))
    changes = {
        dataset_id: _put_checks_of(session, dataset_id, current[dataset_id], declared)
        for dataset_id, declared in checks.items()
    }
    return {dataset_id: change for dataset_id, change in changes.items() if change}


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
        # A removed check is kept for its results, but deactivated.
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


def add_undeclared_dataset(
    session: Session, project: ProjectSpec, name: str, spec: DatasetSpec, *, lake: str
) -> int:
    """Add a dataset that a project creates without declaring it; return its id.

    It belongs to the project but has no declaration, so registering the project does not change it.
    """
    full_name = DatasetId(lake, name).full_name
    row = session.scalar(select(Dataset).where(Dataset.full_name == full_name))
    if row is not None:
        set_status(session, row, ACTIVE)
        return row.dataset_id
    project_id = session.scalar(select(Project.project_id).where(Project.name == project.name))
    fields = dataset_fields(project, spec)
    fields["project_id"], fields["declaration_json"] = project_id, None
    return create_dataset(session, lake, name, **fields).dataset_id
