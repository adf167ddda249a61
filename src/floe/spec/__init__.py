"""Load and validate floe.yaml and platform.yaml into typed models."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from floe.spec.calendars import Calendar, CalendarSpec, get_calendar
    from floe.spec.checks import AnyCheck
    from floe.spec.compiler import (
        Compiled,
        CompiledFileError,
        Staleness,
        compile_project,
        find_stale,
        load_compiled,
        write_compiled,
    )
    from floe.spec.datasets import Column, DatasetSpec
    from floe.spec.findings import Finding, SpecError
    from floe.spec.governance import LegalHold, Owner, Retention, Sla
    from floe.spec.identity import (
        DatasetId,
        ProcessId,
        business_date_of_key,
        dagster_key,
        dataset_of_dagster_key,
        dbt_process,
        default_business_date,
        floe_process,
        parse_version_tag,
        process_of_key,
        run_id,
        version_tag,
    )
    from floe.spec.loader import (
        LoadedProject,
        Validation,
        load_platform,
        load_project,
        validate_project,
    )
    from floe.spec.platform import PlatformSpec
    from floe.spec.processes import Input, Output, ProcessSpec, Retry, Step
    from floe.spec.project import ProjectSpec
    from floe.spec.secrets import SecretRef
    from floe.spec.sql import read_sql
    from floe.spec.values import format_duration

__all__ = [
    "AnyCheck",
    "Calendar",
    "CalendarSpec",
    "Column",
    "Compiled",
    "CompiledFileError",
    "DatasetId",
    "DatasetSpec",
    "Finding",
    "Input",
    "LegalHold",
    "LoadedProject",
    "Output",
    "Owner",
    "PlatformSpec",
    "ProcessId",
    "ProcessSpec",
    "ProjectSpec",
    "Retention",
    "Retry",
    "SecretRef",
    "Sla",
    "SpecError",
    "Staleness",
    "Step",
    "Validation",
    "business_date_of_key",
    "compile_project",
    "dagster_key",
    "dataset_of_dagster_key",
    "dbt_process",
    "default_business_date",
    "find_stale",
    "floe_process",
    "format_duration",
    "get_calendar",
    "load_compiled",
    "load_platform",
    "load_project",
    "parse_version_tag",
    "process_of_key",
    "read_sql",
    "run_id",
    "validate_project",
    "version_tag",
    "write_compiled",
]

# The module of each name. Imported on first use, because importing all models is slow and the
# catalog needs only a few names.
_MODULES = {
    "calendars": "Calendar CalendarSpec get_calendar",
    "checks": "AnyCheck",
    "compiler": (
        "Compiled CompiledFileError Staleness compile_project find_stale load_compiled "
        "write_compiled"
    ),
    "datasets": "Column DatasetSpec",
    "findings": "Finding SpecError",
    "governance": "LegalHold Owner Retention Sla",
    "identity": (
        "DatasetId ProcessId business_date_of_key dagster_key "
        "dataset_of_dagster_key dbt_process default_business_date floe_process "
        "parse_version_tag process_of_key run_id version_tag"
    ),
    "loader": "LoadedProject Validation load_platform load_project validate_project",
    "platform": "PlatformSpec",
    "processes": "Input Output ProcessSpec Retry Step",
    "project": "ProjectSpec",
    "secrets": "SecretRef",
    "sql": "read_sql",
    "values": "format_duration",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value
