"""A temporary Spark cluster on loopback: a master and two workers."""

import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType

from floe.execution.java import OPTIONS, Java, find_java, spark_environ, spark_home
from tools import processes

START_SECONDS = 120
# Workers start their executors with this module, which only a full JDK has.
MODULE = "jdk.incubator.vector"
LOOPBACK = "127.0.0.1"


class FullJdkMissingError(Exception):
    """The cluster needs a full JDK; the Java from PyPI is not enough."""

    def __init__(self, java: Java) -> None:
        super().__init__(
            f"{java.executable} lacks the module {MODULE}, which Spark's workers need. "
            "Install a full JDK 17 or 21 and set JAVA_HOME."
        )


class ClusterNotStartedError(Exception):
    """A part of the cluster ended, or was not ready in time."""

    def __init__(self, name: str, output: str) -> None:
        super().__init__(f"The {name} did not start. Its output:\n{output}")


def find_jdk() -> Java:
    """Return a Java that a cluster can run on."""
    java = find_java()
    listed = subprocess.run(
        [java.executable, "--list-modules"], capture_output=True, text=True, check=True
    )
    if MODULE not in listed.stdout:
        raise FullJdkMissingError(java)
    return java


class StandaloneCluster:
    """A master and workers with one core each, from pip's pyspark."""

    def __init__(self, workers: int = 2, memory: str = "1g") -> None:
        self._java = find_jdk()
        self._workers, self._memory = workers, memory
        self._home = Path(tempfile.mkdtemp(prefix="floe-spark-"))
        self._processes: list[subprocess.Popen[bytes]] = []
        self.port = _free_port()

    @property
    def url(self) -> str:
        """The value for `compute.url`."""
        return f"spark://{LOOPBACK}:{self.port}"

    def __enter__(self) -> "StandaloneCluster":
        try:
            self._start_master()
            for index in range(self._workers):
                self._start_worker(f"worker-{index}")
            for index in range(self._workers):
                self._wait(f"worker-{index}", "Successfully registered with master")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop all processes, the workers first, and remove their files."""
        for process in reversed(self._processes):
            processes.end(process)
        shutil.rmtree(self._home, ignore_errors=True)

    def _start_master(self) -> None:
        where = ["--host", LOOPBACK, "--port", str(self.port), "--webui-port", "0"]
        self._launch("master", "org.apache.spark.deploy.master.Master", where)
        self._wait("master", "I have been elected leader")

    def _start_worker(self, name: str) -> None:
        share = ["--cores", "1", "--memory", self._memory]
        where = ["--host", LOOPBACK, "--webui-port", "0", "--work-dir", str(self._home / name)]
        kind = "org.apache.spark.deploy.worker.Worker"
        self._launch(name, kind, [*share, *where, self.url])

    def _launch(self, name: str, kind: str, arguments: list[str]) -> None:
        jars = spark_home() / "jars" / "*"
        java = [str(self._java.executable), "-cp", str(jars), *OPTIONS, "-Xmx256m"]
        # Spark's shell scripts set the version; without it a worker expects a source tree.
        set_by_scripts = {"PYSPARK_PYTHON": sys.executable, "SPARK_SCALA_VERSION": "2.13"}
        environ = {**spark_environ(self._java), **set_by_scripts}
        with (self._home / f"{name}.log").open("wb") as log:
            self._processes.append(
                processes.start(
                    [*java, kind, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=self._home,
                    env=environ,
                )
            )

    def _wait(self, name: str, sign: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        log = self._home / f"{name}.log"
        while not re.search(sign, log.read_text(errors="replace")):
            ended = any(process.poll() is not None for process in self._processes)
            if ended or time.monotonic() > deadline:
                raise ClusterNotStartedError(name, log.read_text(errors="replace")[-2000:])
            time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
