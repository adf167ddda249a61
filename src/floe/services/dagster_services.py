"""The processes that Dagster is made of, each with what it needs."""

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
from floe.services.ports import HOST
from floe.services.probes import answers_socket, beats, shows_project
from floe.services.service import AS_USER, Service, environ_of, log_of

HOME, CODE, WORKERS, WEB, DAEMON = "home", "code", "workers", "web", "daemon"
# A process with several threads must not be copied, and these libraries start some by themselves.
ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
OWN_DEFINITIONS = Path("orchestration", "definitions.py")
RUN_GRACE = 40.0
"""Runs that are under way get this long to end."""
LOAD_SECONDS = 600.0
"""A large project takes its time to load."""


@dataclass(frozen=True)
class _Dagster:
    """What its processes have in common."""

    site: Site
    code: Path
    workspace: Path
    url: str
    secret: str = field(repr=False)
    environ: dict[str, str] = field(repr=False)

    def script(self, name: str) -> str:
        return str(Path(sys.executable).with_name(name))


def dagster_services(site: Site, runtime: Path, port: int) -> list[Service]:
    """Return the services of Dagster for a project, in the order in which they start."""
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
    """Return the module that Dagster loads: the project's own, or the one that floe has."""
    own = (site.root / OWN_DEFINITIONS).is_file()
    return ".".join(OWN_DEFINITIONS.with_suffix("").parts) if own else "floe.orchestration.project"


def _home(dagster: _Dagster) -> Service:
    return Service(
        name=HOME,
        command=(sys.executable, "-m", "floe.orchestration.preparing"),
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
        # It runs the project in a second process, whose socket it makes among temporary files.
        environ={**dagster.environ, "TMPDIR": str(dagster.code.parent)},
        # It opens the database too, and may do so beside others once the tables are there.
        needs=() if is_prepared(site) else (HOME,),
        # It and the workers start runs, which write the data of users.
        umask=AS_USER,
        probe=answers_socket(dagster.code),
        start_seconds=LOAD_SECONDS,
        grace=RUN_GRACE,
    )


def _workers(dagster: _Dagster, socket: Path) -> Service:
    site = dagster.site
    return Service(
        name=WORKERS,
        command=(sys.executable, "-m", "floe.orchestration.launcher.zygote"),
        log=log_of(site, WORKERS),
        folder=site.root,
        environ={**dagster.environ, **ONE_THREAD, MODULE_VARIABLE: module_of(site)},
        # Runs are ended before what they work with. The project is compiled by the code server: dbt
        # starts threads for that, and a process that has some cannot be copied.
        needs=(HOME, CODE, "spark", "api"),
        umask=AS_USER,
        probe=answers_socket(socket),
        start_seconds=LOAD_SECONDS,
        grace=RUN_GRACE,
        clean=Workers.of_home(home_of(site)).end,
    )


def _web(dagster: _Dagster, port: int) -> Service:
    return Service(
        name=WEB,
        # The guard and Dagster's app in one process: no port answers without a login.
        command=(sys.executable, "-m", "floe.services.web", str(port)),
        log=log_of(dagster.site, WEB),
        folder=dagster.site.root,
        environ=dagster.environ,
        needs=(HOME, CODE),
        address=dagster.url,
        probe=shows_project(dagster.url, dagster.secret),
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
        # It starts runs, which need what runs need.
        needs=(HOME, CODE, WORKERS, "spark", "api"),
        probe=beats(dagster.url, dagster.secret),
    )
