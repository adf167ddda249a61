"""What the user declares: floe.yaml and platform.yaml, as models that were found right."""

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
    from floe.spec.identity import (
        DatasetId,
        ProcessId,
        autosys_process,
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
    from floe.spec.promises import LegalHold, Owner, Retention, Sla
    from floe.spec.secrets import SecretRef
    from floe.spec.sql_files import read_sql
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
    "autosys_process",
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

# Where each name is at home. Fetched when first asked for: whoever needs one name of this package,
# as the catalog does, must not wait for the language's whole model.
_HOMES = {
    "calendars": "Calendar CalendarSpec get_calendar",
    "checks": "AnyCheck",
    "compiler": (
        "Compiled CompiledFileError Staleness compile_project find_stale load_compiled "
        "write_compiled"
    ),
    "datasets": "Column DatasetSpec",
    "findings": "Finding SpecError",
    "identity": (
        "DatasetId ProcessId autosys_process business_date_of_key dagster_key "
        "dataset_of_dagster_key dbt_process default_business_date floe_process "
        "parse_version_tag process_of_key run_id version_tag"
    ),
    "loader": "LoadedProject Validation load_platform load_project validate_project",
    "platform": "PlatformSpec",
    "processes": "Input Output ProcessSpec Retry Step",
    "project": "ProjectSpec",
    "promises": "LegalHold Owner Retention Sla",
    "secrets": "SecretRef",
    "sql_files": "read_sql",
    "values": "format_duration",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value
