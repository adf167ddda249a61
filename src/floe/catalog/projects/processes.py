"""Register the processes of a project and their declared edges."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from sqlalchemy import select

from floe.catalog.audit import Difference, change_fields, without_none
from floe.catalog.datasets import DRAFT, new_dataset
from floe.catalog.edges import (
    DATASET,
    DECLARED,
    PROCESS,
    NewEdge,
    consumes,
    produces,
    redeclare_edges,
)
from floe.catalog.errors import OwnedElsewhereError, WriterConflictError
from floe.catalog.processes import DEPRECATED, ProcessFields, new_process
from floe.catalog.projects import declarations
from floe.catalog.projects.report import describe_changes
from floe.catalog.projects.scope import Scope, put_slas, rows_by_name
from floe.catalog.stores import store_of
from floe.catalog.tables import Dataset, LineageEdge, Process, Project

Changes = defaultdict[str, Difference]


def register_processes(scope: Scope, datasets: Mapping[str, Dataset]) -> None:
    """Make the catalog's processes and declared edges match the project."""
    changes: Changes = defaultdict(Difference)
    known = _rename(scope, _known(scope), changes)
    rows = {
        name: _put_process(scope, known.get(scope.process_key(name)), name, fields, changes[name])
        for name, fields in _fields(scope).items()
    }
    gone = _deprecate(scope, set(map(id, rows.values())))
    datasets = {**datasets, **_undeclared_datasets(scope, datasets)}
    scope.session.flush()
    process_ids = [row.process_id for row in (*rows.values(), *gone)]
    changed = redeclare_edges(scope.session, process_ids, _edges(scope, rows, datasets))
    for action, count in (
        ("added", changed.added),
        ("reopened", changed.reopened),
        ("ended", changed.ended),
    ):
        if count:
            scope.report.add(action, "edges", str(count))
    _check_writers(scope, datasets)
    _mark_written(scope, datasets)


def _known(scope: Scope) -> dict[str, Process]:
    specs = scope.spec.processes
    names = {*specs, *(spec.renamed_from for spec in specs.values() if spec.renamed_from)}
    keys = [scope.process_key(name) for name in names]
    return rows_by_name(scope.session, Process, Process.process_key, keys)


def _rename(scope: Scope, known: dict[str, Process], changes: Changes) -> dict[str, Process]:
    for name, spec in scope.spec.processes.items():
        key, before = scope.process_key(name), spec.renamed_from
        if before and key not in known and scope.process_key(before) in known:
            row = known[key] = known.pop(scope.process_key(before))
            changes[name].add("process_key", row.process_key, key)
            row.process_key = key
            scope.report.add("renamed", "process", name, [f"was {before}"])
    return known


def _fields(scope: Scope) -> dict[str, ProcessFields]:
    specs = scope.spec.processes
    slas = put_slas(
        scope,
        {
            f"process:{scope.process_key(name)}": declarations.process_sla(scope.spec, spec)
            for name, spec in specs.items()
        },
    )
    fields = {}
    for name, spec in specs.items():
        values = declarations.process_fields(scope.spec, name, spec)
        values["project_id"] = scope.project.project_id
        values["sla_id"] = slas.get(f"process:{scope.process_key(name)}")
        fields[name] = values
    return fields


def _put_process(
    scope: Scope, row: Process | None, name: str, fields: ProcessFields, change: Difference
) -> Process:
    key = scope.process_key(name)
    if row is None:
        row = new_process(key, **fields)
        scope.session.add(row)
        scope.report.add("created", "process", name)
        scope.audit("create", "process", key, Difference(after=without_none(fields)))
        return row
    _check_ownership(scope, row)
    action = "rename" if change else "update"
    if changed := change_fields(row, fields):
        scope.report.add("updated", "process", name, describe_changes(changed))
        change.update(changed)
    if change:
        scope.audit(action, "process", key, change)
    return row


def _check_ownership(scope: Scope, row: Process) -> None:
    if row.project_id in (None, scope.project.project_id) or row.status == DEPRECATED:
        return
    owner = scope.session.get_one(Project, row.project_id)
    raise OwnedElsewhereError("Process", row.process_key, owner.name, scope.project.name)


def _deprecate(scope: Scope, declared: set[int]) -> list[Process]:
    owned = scope.session.scalars(
        select(Process).where(
            Process.project_id == scope.project.project_id, Process.status != DEPRECATED
        )
    )
    gone = [row for row in owned if id(row) not in declared]
    for row in gone:
        change = change_fields(row, {"status": DEPRECATED})
        scope.audit("deprecate", "process", row.process_key, change)
        scope.report.add("deprecated", "process", row.name or row.process_key)
    return gone


def _undeclared_datasets(scope: Scope, datasets: Mapping[str, Dataset]) -> dict[str, Dataset]:
    """Return datasets that are used but not declared; add unknown ones as DRAFT."""
    names = {name for _, name, _ in _links(scope) if name not in datasets}
    full_names = [scope.full_name(name) for name in names]
    rows = rows_by_name(scope.session, Dataset, Dataset.full_name, full_names)
    undeclared = {row.name: row for row in rows.values()}
    for name in sorted(names - set(undeclared)):
        undeclared[name] = new_dataset(scope.lake, name, status=DRAFT, actor=scope.actor)
        scope.session.add(undeclared[name])
        scope.report.add("noted", "dataset", name, ["not declared yet; added as DRAFT"])
        scope.audit("create", "dataset", scope.full_name(name), Difference(after={"status": DRAFT}))
    return undeclared


def _links(scope: Scope) -> Iterator[tuple[str, str, bool]]:
    """Yield all (process, dataset, whether it writes) of the project."""
    for name, spec in scope.spec.processes.items():
        for read in spec.inputs.values():
            yield name, read.dataset, False
        for written in spec.outputs.values():
            yield name, written.dataset, True


def _edges(
    scope: Scope, processes: Mapping[str, Process], datasets: Mapping[str, Dataset]
) -> Iterator[NewEdge]:
    for name, dataset, writes in _links(scope):
        process_id, dataset_id = processes[name].process_id, datasets[dataset].dataset_id
        if writes:
            yield produces(process_id, dataset_id, scope.sql.get(name))
        else:
            yield consumes(dataset_id, process_id)


def _check_writers(scope: Scope, datasets: Mapping[str, Dataset]) -> None:
    """Reject a second declared writer of a dataset, unless it allows many."""
    single = {
        datasets[name].dataset_id: name
        for _, name, writes in _links(scope)
        if writes and (datasets[name].declaration_json or {}).get("writers") != "many"
    }
    rows = scope.session.execute(
        select(LineageEdge.target_id, Process.process_key)
        .join(Process, Process.process_id == LineageEdge.source_id)
        .where(
            LineageEdge.source_type == PROCESS,
            LineageEdge.target_type == DATASET,
            store_of(scope.session).among(LineageEdge.__table__.c.target_id, sorted(single)),
            LineageEdge.known_by == DECLARED,
            LineageEdge.ended_at.is_(None),
        )
    )
    writers: defaultdict[int, list[str]] = defaultdict(list)
    for dataset_id, key in rows:
        writers[dataset_id].append(key)
    for dataset_id, keys in writers.items():
        if len(keys) > 1:
            raise WriterConflictError(single[dataset_id], keys)


def _mark_written(scope: Scope, datasets: Mapping[str, Dataset]) -> None:
    """Set `floe_writes` of the datasets that a declared process writes."""
    dataset_ids = sorted(row.dataset_id for row in datasets.values())
    outputs = set(
        scope.session.scalars(
            select(LineageEdge.target_id).where(
                LineageEdge.source_type == PROCESS,
                LineageEdge.target_type == DATASET,
                store_of(scope.session).among(LineageEdge.__table__.c.target_id, dataset_ids),
                LineageEdge.known_by == DECLARED,
                LineageEdge.ended_at.is_(None),
            )
        )
    )
    for name, row in datasets.items():
        if row.dataset_id in outputs or name in scope.spec.datasets:
            row.floe_writes = row.dataset_id in outputs
