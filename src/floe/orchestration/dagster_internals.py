"""The non-public parts of Dagster that floe uses. No other module imports them from Dagster.

Each part is imported on first use, because some take a second to load. Dagster's version is pinned;
docs/decisions/0016-non-public-parts-of-dagster-and-dbt.md says what to do before changing it.
"""

from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from floe.errors import FloeError

if TYPE_CHECKING:
    from dagster import DagsterRun, StepExecutionContext
    from dagster._cli.api import _execute_run_command_body as execute_run_command_body
    from dagster._core.event_api import EventLogCursor
    from dagster._core.execution.plan.execute_step import core_dagster_event_sequence_for_step
    from dagster._core.execution.plan.objects import StepSuccessData
    from dagster._core.instance import InstanceRef
    from dagster._core.launcher import CheckRunHealthResult, LaunchRunContext, WorkerStatus
    from dagster._core.log_manager import (
        DagsterLogManager,
        get_log_record_event,
        has_log_record_event,
    )
    from dagster._core.storage.event_log.sqlite.sqlite_event_log import (
        INDEX_SHARD_NAME,
        SqliteEventLogStorage,
        SqliteEventLogStorageWatchdog,
    )
    from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
    from dagster._core.storage.tags import (
        GRPC_INFO_TAG,
        MAX_RETRIES_TAG,
        RETRY_ON_ASSET_OR_OP_FAILURE_TAG,
    )
    from dagster._core.workspace.context import WorkspaceProcessContext, WorkspaceRequestContext
    from dagster._core.workspace.load_target import WorkspaceFileTarget
    from dagster._serdes import ConfigurableClassData
    from dagster._utils.interrupts import capture_interrupts
    from dagster._utils.log import configure_loggers
    from dagster_webserver.app import create_app_from_workspace_process_context

__all__ = [
    "GRPC_INFO_TAG",
    "INDEX_SHARD_NAME",
    "MAX_RETRIES_TAG",
    "MEMBERS",
    "PARTS",
    "RETRY_ON_ASSET_OR_OP_FAILURE_TAG",
    "SQLITE_BUSY_TIMEOUT_SECONDS",
    "CheckRunHealthResult",
    "ConfigurableClassData",
    "DagsterChangedError",
    "EventLogCursor",
    "InstanceRef",
    "LaunchRunContext",
    "Part",
    "SqliteEventLogStorage",
    "SqliteEventLogStorageWatchdog",
    "StepSuccessData",
    "WorkerStatus",
    "WorkspaceFileTarget",
    "WorkspaceProcessContext",
    "WorkspaceRequestContext",
    "capture_interrupts",
    "configure_loggers",
    "copy_step_context",
    "core_dagster_event_sequence_for_step",
    "create_app_from_workspace_process_context",
    "execute_run_command_body",
    "get_log_record_event",
    "has_log_record_event",
]


class DagsterChangedError(FloeError):
    """The installed Dagster lacks a non-public part that floe uses."""

    def __init__(self, part: str, used_by: str, purpose: str) -> None:
        super().__init__(
            f"Dagster {version('dagster')} has no {part}, which floe's {used_by} needs to "
            f"{purpose}. Install the version of Dagster that floe pins, or adapt {used_by}: see "
            "docs/decisions/0016-non-public-parts-of-dagster-and-dbt.md."
        )


@dataclass(frozen=True)
class Part:
    """A name in a non-public module of Dagster."""

    name: str
    module: str
    used_by: str
    """The file in floe/orchestration."""
    purpose: str

    def load(self) -> Any:
        """Import the part, or say that Dagster has moved it."""
        try:
            return getattr(import_module(self.module), self.name)
        except (ImportError, AttributeError) as error:
            name = f"{self.module}.{self.name}"
            raise DagsterChangedError(name, self.used_by, self.purpose) from error


def _parts(used_by: str, purpose: str, module: str, *names: str) -> dict[str, Part]:
    return {name.lstrip("_"): Part(name, module, used_by, purpose) for name in names}


_EVENT_LOG = ("event_log.py", "keep SQLite event logs open between events")
_LAUNCHER = ("launcher/run_launcher.py", "launch runs as forks of the warm process")
_RANGES = ("ranges.py", "compute one partition after the other in a run for several")
_WEB = ("webserver.py", "serve Dagster's web interface read-only or writable per caller")

PARTS: dict[str, Part] = {
    **_parts(
        *_EVENT_LOG,
        "dagster._core.storage.event_log.sqlite.sqlite_event_log",
        "INDEX_SHARD_NAME",
        "SqliteEventLogStorage",
        "SqliteEventLogStorageWatchdog",
    ),
    **_parts(*_EVENT_LOG, "dagster._core.storage.sqlite", "SQLITE_BUSY_TIMEOUT_SECONDS"),
    **_parts(*_EVENT_LOG, "dagster._serdes", "ConfigurableClassData"),
    # `dagster api execute_run` does the same, but closes the instance before the state of the run
    # can be read.
    **_parts(*_LAUNCHER, "dagster._cli.api", "_execute_run_command_body"),
    **_parts(*_LAUNCHER, "dagster._core.instance", "InstanceRef"),
    **_parts(
        *_LAUNCHER,
        "dagster._core.launcher",
        "CheckRunHealthResult",
        "LaunchRunContext",
        "WorkerStatus",
    ),
    **_parts(*_LAUNCHER, "dagster._core.storage.tags", "GRPC_INFO_TAG"),
    **_parts(*_LAUNCHER, "dagster._utils.interrupts", "capture_interrupts"),
    **_parts(
        "observing/observer.py",
        "read the log of a run from a given position",
        "dagster._core.event_api",
        "EventLogCursor",
    ),
    **_parts(
        "processes.py",
        "retry runs whose process was killed",
        "dagster._core.storage.tags",
        "MAX_RETRIES_TAG",
        "RETRY_ON_ASSET_OR_OP_FAILURE_TAG",
    ),
    **_parts(
        *_RANGES,
        "dagster._core.execution.plan.execute_step",
        "core_dagster_event_sequence_for_step",
    ),
    **_parts(*_RANGES, "dagster._core.execution.plan.objects", "StepSuccessData"),
    **_parts(*_RANGES, "dagster._core.log_manager", "get_log_record_event", "has_log_record_event"),
    **_parts(
        *_WEB,
        "dagster._core.workspace.context",
        "WorkspaceProcessContext",
        "WorkspaceRequestContext",
    ),
    **_parts(*_WEB, "dagster._core.workspace.load_target", "WorkspaceFileTarget"),
    **_parts(*_WEB, "dagster._utils.log", "configure_loggers"),
    **_parts(*_WEB, "dagster_webserver.app", "create_app_from_workspace_process_context"),
}
"""The parts by the name under which this module offers them."""

MEMBERS: dict[str, tuple[str, ...]] = {
    "SqliteEventLogStorage": (
        "_base_dir",
        "_connect",
        "_db_lock",
        "_initdb",
        "_initialized_dbs",
        "_obs",
        "_watchers",
        "conn_string_for_shard",
        "has_table",
        "path_for_shard",
    ),
    "SqliteEventLogStorageWatchdog": ("_log_path", "_patterns", "_process_log", "on_modified"),
    "WorkspaceProcessContext": ("_instance", "create_request_context", "get_current_workspace"),
    "AssetExecutionContext": ("get_step_execution_context",),
    "AssetsDefinition": ("dagster_internal_init", "get_attributes_dict"),
    "DagsterInstance": ("event_log_storage", "optimize_for_webserver"),
    "DefaultRunLauncher": ("_instance", "check_run_worker_health"),
    "EventLogStorage": (
        "delete_concurrency_limit",
        "get_latest_asset_check_execution_by_key",
        "get_pool_limits",
        "set_concurrency_slots",
    ),
    "StepExecutionContext": (
        "_execution_data",
        "event_loop",
        "get_known_state",
        "output_capture",
        "plan_data",
        "previous_attempt_count",
    ),
}
"""Undocumented members of Dagster's classes that floe uses or overrides."""


def __getattr__(name: str) -> Any:
    part = PARTS.get(name)
    if part is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return part.load()


def copy_step_context(
    step: "StepExecutionContext", run: "DagsterRun", log: "DagsterLogManager"
) -> "StepExecutionContext":
    """Return the context of a step with another run and log."""
    from dagster import StepExecutionContext

    return StepExecutionContext(
        plan_data=step.plan_data._replace(dagster_run=run),
        execution_data=step._execution_data,
        log_manager=log,
        step=step.step,
        output_capture=step.output_capture,
        known_state=step.get_known_state(),
        event_loop=step.event_loop,
    )
