"""What the user declares: floe.yaml and platform.yaml, as models that were found right."""

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

__all__ = [
    "AnyCheck",
    "Calendar",
    "CalendarSpec",
    "Column",
    "Compiled",
    "CompiledFileError",
    "DatasetSpec",
    "Finding",
    "Input",
    "LegalHold",
    "LoadedProject",
    "Output",
    "Owner",
    "PlatformSpec",
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
    "compile_project",
    "find_stale",
    "get_calendar",
    "load_compiled",
    "load_platform",
    "load_project",
    "read_sql",
    "validate_project",
    "write_compiled",
]
