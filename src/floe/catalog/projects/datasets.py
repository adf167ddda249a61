"""The datasets of a project: registered, renamed, changed, or deprecated when they vanished."""

from collections import defaultdict

from sqlalchemy import delete, select

from floe.catalog.datasets import (
    ACTIVE,
    DEPRECATED,
    DatasetFields,
    add_alias,
    new_dataset,
    record_dataset_event,
    rename_dataset,
    set_status,
)
from floe.catalog.errors import OwnedElsewhereError
from floe.catalog.joining import bump_names_epoch
from floe.catalog.projects import declarations
from floe.catalog.projects.details import put_checks, put_slas, put_tags
from floe.catalog.projects.reading import rows_by_name
from floe.catalog.projects.scope import Scope
from floe.catalog.rows import Difference, batches, change_fields, given
from floe.catalog.schemas import store_schemas
from floe.catalog.tables import Dataset, DatasetAlias, Project

Changes = defaultdict[str, Difference]


def register_datasets(scope: Scope) -> dict[str, Dataset]:
    """Make the catalog's datasets those of the project; return the declared ones by name."""
    changes: Changes = defaultdict(Difference)
    known = _rename(scope, _known(scope), changes)
    rows = {
        name: _put_dataset(scope, known.get(name), name, fields, changes)
        for name, fields in _fields(scope).items()
    }
    scope.session.flush()
    _take_names_back(scope, set(rows) - set(known))
    _put_details(scope, rows, changes)
    _announce(scope, known, rows, changes)
    _deprecate(scope, {row.dataset_id for row in rows.values()})
    return rows


def _known(scope: Scope) -> dict[str, Dataset]:
    names = set(scope.spec.datasets)
    names |= {spec.renamed_from for spec in scope.spec.datasets.values() if spec.renamed_from}
    full_names = [scope.full_name(name) for name in names]
    found = rows_by_name(scope.session, Dataset, Dataset.full_name, full_names)
    return {row.name: row for row in found.values()}


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
    """The values of every declared dataset's row, with the numbers of its promise and schema."""
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
        # Without a declared schema, the one that was seen last stays.
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
        changes[name].after.update(given(fields), status=ACTIVE)
        return row
    _check_ownership(scope, row)
    changes[name].update(change_fields(row, fields))
    before = row.status
    if set_status(scope.session, row, ACTIVE, actor=scope.actor):
        changes[name].add("status", before, ACTIVE)
    return row


def _take_names_back(scope: Scope, names: set[str]) -> None:
    """Let the name of a new dataset mean that one, where an event had made it an alias before."""
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
    numbers = {row.dataset_id: name for name, row in rows.items()}
    specs = {number: scope.spec.datasets[name] for number, name in numbers.items()}
    tags = put_tags(scope.session, {n: set(spec.tags) for n, spec in specs.items()})
    for number, before in tags.items():
        changes[numbers[number]].add("tags", sorted(before), sorted(set(specs[number].tags)))
    checks = put_checks(scope.session, {n: spec.checks for n, spec in specs.items()})
    for number, change in checks.items():
        changes[numbers[number]].add("checks", change.before, change.after)
    for number, spec in specs.items():
        for alias in spec.aliases:
            add_alias(scope.session, number, alias.namespace, alias.name)


def _announce(
    scope: Scope, known: dict[str, Dataset], rows: dict[str, Dataset], changes: Changes
) -> None:
    for name, row in rows.items():
        change = changes[name]
        if name not in known:
            scope.report.add("created", "dataset", name)
            scope.note("create", "dataset", row.full_name, Difference(after=change.after))
            record_dataset_event(scope.session, row.dataset_id, "REGISTERED", scope.actor)
        elif change:
            words = _words(change)
            scope.report.add("updated", "dataset", name, words)
            action = "rename" if "name" in change.after else "update"
            scope.note(action, "dataset", row.full_name, change)
            detail = {"changed": sorted(words)}
            record_dataset_event(scope.session, row.dataset_id, "UPDATED", scope.actor, detail)


def _words(change: Difference) -> list[str]:
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
        # One that code of the project made and nobody ever declared cannot have vanished.
        if row.dataset_id not in declared and row.declaration_json is not None:
            change = Difference({"status": row.status}, {"status": DEPRECATED})
            set_status(scope.session, row, DEPRECATED, actor=scope.actor)
            scope.note("deprecate", "dataset", row.full_name, change)
            scope.report.add("deprecated", "dataset", row.name)
