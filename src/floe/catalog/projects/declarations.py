"""Convert declarations to catalog values. Pure: no database, no clock."""

from typing import Any

from floe.catalog.checks import CheckFields
from floe.catalog.datasets import DatasetFields
from floe.catalog.processes import ProcessFields
from floe.catalog.schemas import Column
from floe.catalog.slas import SlaFields
from floe.spec import AnyCheck, DatasetSpec, ProcessSpec, ProjectSpec, Sla
from floe.spec.checks import SqlCheck

# Fields of a check that have their own columns, or are not part of the rule.
_CHECK_COLUMNS = frozenset({"name", "kind", "on_fail", "sql", "expect"})


def dataset_fields(project: ProjectSpec, dataset: DatasetSpec) -> DatasetFields:
    """Return the columns of DATASET that a declaration fills."""
    owner = project.owner_or_default(dataset.owner)
    return {
        "description": dataset.description or None,
        "category": dataset.category,
        "default_format": dataset.format.upper(),
        "owner_team": owner.team if owner else None,
        "owner_email": owner.email if owner else None,
        "timezone": dataset.timezone or project.timezone,
        "needs_validation": bool(dataset.checks or dataset.manifest),
        "declaration_json": declaration(dataset),
    }


def dataset_columns(dataset: DatasetSpec) -> list[Column]:
    """Return the declared schema."""
    return [
        Column(
            column.name,
            column.type,
            column.nullable,
            {"description": column.description} if column.description else None,
        )
        for column in dataset.columns
    ]


def dataset_sla(project: ProjectSpec, dataset: DatasetSpec) -> SlaFields | None:
    """Return the SLA of a dataset: a due time, a maximum age, or both."""
    sla = dataset.sla
    if sla is None:
        return None
    fields = _sla_fields(project, sla, dataset.timezone)
    fields["sla_window_sec"] = int(sla.max_age.total_seconds()) if sla.max_age else None
    return fields


def process_sla(project: ProjectSpec, process: ProcessSpec) -> SlaFields | None:
    """Return the SLA of a process: a due time, a maximum duration, or both."""
    sla = process.sla
    if sla is None:
        return None
    fields = _sla_fields(project, sla, None)
    fields["sla_window_sec"] = int(sla.max_duration.total_seconds()) if sla.max_duration else None
    return fields


def _sla_fields(project: ProjectSpec, sla: Sla, zone: str | None) -> SlaFields:
    return {
        "description": sla.description or None,
        "due": sla.due.isoformat("seconds" if sla.due.second else "minutes") if sla.due else None,
        "zone": sla.timezone or zone or project.timezone,
        "calendar": sla.calendar or project.calendar,
        "day_offset": sla.day_offset,
        "escalation_json": declaration(sla),
    }


def check_fields(check: AnyCheck) -> tuple[str, CheckFields]:
    """Return a check's name, and the columns of QUALITY_CHECK_DEF that it fills."""
    rule = declaration(check)
    parameters = {key: value for key, value in rule.items() if key not in _CHECK_COLUMNS}
    return check.label, {
        "kind": check.kind,
        "severity": check.on_fail.upper(),
        "sql_expression": check.sql if isinstance(check, SqlCheck) else None,
        "expected_result": str(check.expect) if isinstance(check, SqlCheck) else None,
        "parameters_json": parameters or None,
        "active": True,
    }


def process_fields(project: ProjectSpec, name: str, process: ProcessSpec) -> ProcessFields:
    """Return the columns of PROCESS that a declaration fills."""
    owner = project.owner_or_default(process.owner)
    return {
        "name": name,
        "description": process.description or None,
        "technology": process.runs_on.upper(),
        "team": owner.team if owner else None,
        "owner_email": owner.email if owner else None,
        "trigger_mode": process.trigger.upper(),
        "status": "ACTIVE",
        "declaration_json": declaration(process),
    }


def declaration(model: Any) -> dict[str, Any]:
    """Return a declaration as plain values, without defaults."""
    plain: dict[str, Any] = model.model_dump(mode="json", exclude_defaults=True, by_alias=True)
    return plain
