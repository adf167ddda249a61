"""Dagster's processes as services: commands, environment, dependencies and probes."""

import sys
from dataclasses import dataclass, field
from pathlib import Path

from floe.execution.site import Site
from floe.orchestration.home import (
    ADDRESS_VARIABLE,
    MODULE_VARIABLE,
    SOCKET_VARIABLE,
    dagster_environ,
    home_of,
    is_prepared,
    new_web_secret,
    write_home,
    write_workspace,
)
from floe.orchestration.launcher.workers import Workers
from floe.services.service import (
    AS_USER,
    HOST,
    Service,
    answers_socket,
    environ_of,
    has_heartbeat,
    loads_project,
    log_of,
)

HOME, CODE, WORKERS, WEB, DAEMON = "home", "code", "workers", "web", "daemon"
# A process with several threads must not be forked, and these libraries start some on import.
ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
OWN_DEFINITIONS = Path("orchestration", "definitions.py")
RUN_GRACE = 40.0
"""Seconds that running runs get to end."""
LOAD_SECONDS = 600.0
"""Seconds after which a start counts as failed: a large project takes long to load."""


@dataclass(frozen=True)
class _Dagster:
    """What Dagster's processes have in common."""

    site: Site
    code: Path
    workspace: Path
    url: str
    secret: str = field(repr=False)
    environ: dict[str, str] = field(repr=False)

    def script(self, name: str) -> str:
        return str(Path(sys.executable).with_name(name))


def dagster_services(site: Site, runtime: Path, port: int) -> list[Service]:
    """Return Dagster's services for a project, in the order in which they start."""
    write_home(site)
    code = runtime / "code.sock"
    url = f"http://{HOST}:{port}"
    environ = {
        **environ_of(site),
        **dagster_environ(site),
        SOCKET_VARIABLE: str(runtime / "launcher.sock"),
        ADDRESS_VARIABLE: url,
    }
    dagster = _Dagster(
        site, code, write_workspace(site, code), url, new_web_secret(home_of(site)), environ
    )
    warm = site.platform.orchestrator.launcher == "warm"
    workers = [_workers(dagster, runtime / "launcher.sock")] if warm else []
    return [_home(dagster), _code(dagster), *workers, _web(dagster, port), _daemon(dagster)]


def module_of(site: Site) -> str:
    """Return the module that Dagster loads: the project's own, else floe's."""
    if (site.root / OWN_DEFINITIONS).is_file():
        return ".".join(OWN_DEFINITIONS.with_suffix("").parts)
    return "floe.orchestration.code_location"


def _home(dagster: _Dagster) -> Service:
    return Service(
        name=HOME,
        command=(sys.executable, "-m", "floe.orchestration.instance"),
        log=log_of(dagster.site, HOME),
        folder=dagster.site.root,
        environ=dagster.environ,
        once=True,
    )


def _code(dagster: _Dagster) -> Service:
    site = dagster.site
    return Service(
        name=CODE,
        command=(
            dagster.script("dagster"),
            *("code-server", "start", "--socket", str(dagster.code)),
            *("--module-name", module_of(site), "--working-directory", str(site.root)),
            *("--location-name", site.spec.name, "--use-python-environment-entry-point"),
        ),
        log=log_of(site, CODE),
        folder=site.root,
        # The code server runs the project in a second process with a socket in TMPDIR.
        environ={**dagster.environ, "TMPDIR": str(dagster.code.parent)},
        # It opens Dagster's database too: wait for HOME unless the tables exist already.
        needs=() if is_prepared(site) else (HOME,),
        # Runs started from here write the user's data: use the user's umask.
        umask=AS_USER,
        probe=answers_socket(dagster.code),
        start_seconds=LOAD_SECONDS,
        grace=RUN_GRACE,
    )


def _workers(dagster: _Dagster, socket: Path) -> Service:
    site = dagster.site
    return Service(
        name=WORKERS,
        command=(sys.executable, "-m", "floe.orchestration.launcher.warm_process"),
        log=log_of(site, WORKERS),
        folder=site.root,
        environ={**dagster.environ, **ONE_THREAD, MODULE_VARIABLE: module_of(site)},
        # Stop runs before the services they use. The code server compiles the project, because dbt
        # starts threads for that, and a process with threads cannot be forked.
        needs=(HOME, CODE, "spark", "api"),
        umask=AS_USER,
        probe=answers_socket(socket),
        start_seconds=LOAD_SECONDS,
        grace=RUN_GRACE,
        clean=Workers.of_home(home_of(site)).kill_all,
    )


def _web(dagster: _Dagster, port: int) -> Service:
    return Service(
        name=WEB,
        # The guard and Dagster's app in one process: no port answers without a login.
        command=(sys.executable, "-m", "floe.services.dagster_web", str(port)),
        log=log_of(dagster.site, WEB),
        folder=dagster.site.root,
        environ=dagster.environ,
        needs=(HOME, CODE),
        address=dagster.url,
        probe=loads_project(dagster.url, dagster.secret),
        start_seconds=LOAD_SECONDS,
    )


def _daemon(dagster: _Dagster) -> Service:
    return Service(
        name=DAEMON,
        command=(
            dagster.script("dagster-daemon"),
            *("run", "--workspace", str(dagster.workspace)),
        ),
        log=log_of(dagster.site, DAEMON),
        folder=dagster.site.root,
        environ=dagster.environ,
        # The daemon starts runs, so it needs what runs need.
        needs=(HOME, CODE, WORKERS, "spark", "api"),
        probe=has_heartbeat(dagster.url, dagster.secret),
    )
