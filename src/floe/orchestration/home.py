"""Dagster's home: the folder where it keeps its state, and the file that tells it how to run.

Nothing here imports Dagster, so that whoever starts it need not wait for it.
"""

import os
import secrets
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import yaml

from floe.execution.site import Site
from floe.execution.spark.properties import write_private
from floe.settings import make_private_file, make_private_folder
from floe.spec.platform import Orchestrator, TagLimit

STORAGE_VARIABLE = "FLOE_DAGSTER_STORAGE"
"""Holds the address of Dagster's database with its password, which stands in no file."""
SOCKET_VARIABLE = "FLOE_LAUNCHER_SOCKET"
"""Says where the process listens that starts runs."""
ADDRESS_VARIABLE = "FLOE_DAGSTER_URL"
"""Says where Dagster's web interface is on this machine."""
MODULE_VARIABLE = "FLOE_DEFINITIONS"
"""Says which module the definitions are in."""
HEADER = "# Written by floe from platform.yaml at every start: change it there.\n"
DEQUEUE_SECONDS = 1
WORKERS = 4
"""How many sensors, schedules and backfills are looked at side by side."""
THREADED = ("sensors", "schedules", "backfills", "auto_materialize")
POLL_SECONDS = 5
"""How often a run is asked whether it still lives."""
CANCEL_SECONDS = 60
WEB_SECRET = "web.secret"  # noqa: S105 - the name of a file


def home_of(site: Site) -> Path:
    """Return the folder of Dagster's state."""
    return site.state_dir / "dagster"


def write_home(site: Site) -> bool:
    """Write dagster.yaml, whole or not at all; tell whether it is another than before."""
    home = home_of(site)
    make_private_folder(home)
    return _write_changed(home / "dagster.yaml", dagster_settings(site.platform.orchestrator, home))


def prepared_by(site: Site) -> Path:
    """Return the file that says which Dagster has made the tables that are there."""
    return home_of(site) / "version"


def is_prepared(site: Site) -> bool:
    """Tell whether Dagster's tables are there, in the shape that this Dagster wants."""
    noted = prepared_by(site)
    return noted.is_file() and noted.read_text(encoding="utf-8") == version("dagster")


def workspace_file(site: Site) -> Path:
    """Return the file that says where Dagster finds the project's definitions."""
    return home_of(site) / "workspace.yaml"


def new_web_secret(home: Path) -> str:
    """Make the secret by which floe's own commands reach Dagster's web interface.

    Only the owner of the project's folder can read it. It changes with every start.
    """
    secret = secrets.token_urlsafe(32)
    write_private(home / WEB_SECRET, secret)
    return secret


def read_web_secret(home: Path) -> str:
    """Return the secret of the web interface that `floe up` has started."""
    return (home / WEB_SECRET).read_text(encoding="ascii")


def write_workspace(site: Site, socket: Path) -> Path:
    """Write where Dagster finds the project's definitions; return that file."""
    server = {"socket": str(socket), "location_name": site.spec.name}
    path = workspace_file(site)
    _write_changed(path, {"load_from": [{"grpc_server": server}]})
    return path


def dagster_environ(site: Site) -> dict[str, str]:
    """Return the variables that every process of Dagster needs, secrets among them."""
    environ = {"DAGSTER_HOME": str(home_of(site)), "FLOE_PROJECT": str(site.root)}
    if url := storage_url(site):
        environ[STORAGE_VARIABLE] = url
    return environ


def web_address(site: Site) -> str:
    """Return where people find Dagster's web interface."""
    declared = site.platform.orchestrator
    here = os.environ.get(ADDRESS_VARIABLE) or f"http://127.0.0.1:{declared.port}"
    return (declared.url or here).rstrip("/")


def storage_url(site: Site) -> str | None:
    """Return the address of Dagster's database, with its password; None for SQLite."""
    declared = site.platform.orchestrator
    if declared.storage_url is None:
        return None
    parts = urlsplit(declared.storage_url)
    if declared.user is None:
        return declared.storage_url
    login = quote(declared.user, safe="")
    if declared.password is not None:
        login += f":{quote(site.reveal(declared.password), safe='')}"
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{login}@{host}"))


def dagster_settings(declared: Orchestrator, home: Path) -> dict[str, Any]:
    """Return what dagster.yaml is to say."""
    return {
        **_storage(declared, home),
        "run_queue": {
            "dequeue_interval_seconds": DEQUEUE_SECONDS,
            "dequeue_use_threads": True,
            "dequeue_num_workers": WORKERS,
        },
        "run_launcher": _launcher(declared),
        "concurrency": {
            "runs": {
                "max_concurrent_runs": declared.max_concurrent_runs,
                "tag_concurrency_limits": [_tag_limit(one) for one in declared.tag_limits],
            },
            "pools": {"granularity": "op"},
        },
        "run_monitoring": {
            "enabled": True,
            "poll_interval_seconds": POLL_SECONDS,
            "start_timeout_seconds": int(declared.start_timeout.total_seconds()),
            "cancel_timeout_seconds": CANCEL_SECONDS,
            "max_resume_run_attempts": 0,
            # A run that was killed must not keep others out of its pools.
            "free_slots_after_run_end_seconds": POLL_SECONDS,
        },
        "run_retries": {
            "enabled": True,
            "max_retries": declared.retries.attempts,
            "retry_on_asset_or_op_failure": declared.retries.failed,
        },
        **{kind: {"use_threads": True, "num_workers": WORKERS} for kind in THREADED},
        "telemetry": {"enabled": False},
        "nux": {"enabled": False},
    }


def _storage(declared: Orchestrator, home: Path) -> Mapping[str, Any]:
    if declared.storage_url is not None:
        return {"storage": {"postgres": {"postgres_url": {"env": STORAGE_VARIABLE}}}}
    # The files are those that Dagster would make itself.
    events = {"base_dir": str(home / "history" / "runs")}
    kept = {"module": "floe.orchestration.event_log", "class": "KeptEventLog", "config": events}
    return {"event_log_storage": kept}


def _launcher(declared: Orchestrator) -> Mapping[str, Any]:
    if declared.launcher == "default":
        return {"module": "dagster", "class": "DefaultRunLauncher", "config": {}}
    return {"module": "floe.orchestration.launcher.warm", "class": "WarmRunLauncher", "config": {}}


def _tag_limit(one: TagLimit) -> dict[str, Any]:
    value = {"applyLimitPerUniqueValue": True} if one.per_value else one.value
    return {"key": one.key, "limit": one.limit, **({} if value is None else {"value": value})}


def _write_changed(path: Path, content: Mapping[str, Any]) -> bool:
    text = HEADER + yaml.safe_dump(dict(content), sort_keys=False)
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return False
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    make_private_file(draft)
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
    return True
