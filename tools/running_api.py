"""A real `floe api` in its own folder, for tests and benchmarks."""

import http.client
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType

FLOE = Path(sys.executable).parent / "floe"


class RunningApi:
    """A `floe api` process that serves a catalog and can be restarted."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        self.port = 0
        self._process: subprocess.Popen[str] | None = None

    def start(self, most_bytes: int | None = None) -> "RunningApi":
        """Start the API on a free port; a restart uses the same port.

        `most_bytes` limits the size of its files, as if the disk were full.
        """
        environment = {**os.environ, "FLOE_CATALOG_URL": self.url}
        upgrade: list[str | Path] = [FLOE, "catalog", "upgrade"]
        subprocess.run(
            upgrade, cwd=self.folder, env=environment, check=True, stdout=subprocess.DEVNULL
        )
        command: list[str | Path] = [FLOE, "api", "--port", str(self.port)]
        if most_bytes is not None:
            command = ["prlimit", f"--fsize={most_bytes}", *command]
        with (self.folder / "api.log").open("a") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.port = self._read_port()
        return self

    def __enter__(self) -> "RunningApi":
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _read_port(self) -> int:
        assert self._process is not None
        assert self._process.stdout is not None
        welcome = self._process.stdout.readline()
        if not welcome:
            self.kill()
            raise RuntimeError(f"floe api did not start: {(self.folder / 'api.log').read_text()}")
        return int(welcome.rsplit(":", 1)[1])

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def writer_pid(self) -> int:
        """The process id of its event writer."""
        return self._children[0]

    def has_writer_after(self, pid: int) -> bool:
        """Whether a new event writer has replaced the one with this process id."""
        return bool(self._children) and self._children[0] != pid

    @property
    def _children(self) -> list[int]:
        listed = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return [int(pid) for pid in listed.split()]

    @property
    def token(self) -> str:
        """The administrator's token."""
        return (self.folder / ".floe" / "token").read_text().strip()

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}

    def send(self, body: bytes) -> int:
        """Send an event on its own connection; return the status, or 0 without an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("POST", "/api/v1/lineage", body, self.headers)
            with connection.getresponse() as answer:
                return answer.status
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()

    def kill(self) -> None:
        """Kill the API, like a power cut."""
        self._end(9)

    def stop(self) -> None:
        """Stop the API in order."""
        self._end(15)

    def _end(self, signal: int) -> None:
        if self._process is None:
            return
        # Popen's context manager closes the pipe and waits, even after an error.
        with self._process as process:
            self._process = None
            process.send_signal(signal)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
