"""The JVM of a Spark Connect server: its command line, and its detached start."""

import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from floe.execution.jars import SPARK_PACKAGES, Progress, resolve_jars
from floe.execution.java import Java, find_java, spark_environ, spark_submit
from floe.execution.os_processes import end_process, start_of
from floe.execution.spark.lake_catalog import lake_file
from floe.execution.spark.server_files import ServerFiles, write_private
from floe.execution.spark.server_settings import (
    LOOPBACK,
    driver_memory,
    is_local,
    master,
    on_loopback,
    server_settings,
)
from floe.settings import make_private_file, make_private_folder

SERVER_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
# Spark 4 accepts only clients with the token in this variable. Other users can read a process's
# command line, but not its environment.
TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105
# Characters that must be escaped in a Java properties file.
SPECIAL = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
IN_KEYS = {**SPECIAL, " ": "\\ ", "=": "\\=", ":": "\\:", "#": "\\#", "!": "\\!"}
# The shell exits at once, so the JVM survives its caller and never becomes a zombie process.
DETACHED = 'output="$0" pid="$1"; shift; "$@" </dev/null >"$output" 2>&1 & echo $! >"$pid"'


def start_jvm(files: ServerFiles, port: int, token: str, progress: Progress) -> int:
    """Start a server on a port; return its process id."""
    jars = resolve_jars(sorted({*SPARK_PACKAGES, *files.compute.packages}), progress)
    progress("starting Spark")
    java = find_java(files.site.environ)
    _write_properties(files, port, jars)
    environ = _environ(java, files) | {TOKEN_VARIABLE: token}
    return _detach(_command(java, files, jars), environ, files)


def _write_properties(files: ServerFiles, port: int, jars: Sequence[Path]) -> None:
    settings = server_settings(files.site, files.profile)
    settings["spark.connect.grpc.binding.port"] = str(port)
    if not is_local(files.compute):
        settings["spark.jars"] = ",".join(map(str, jars))
    revealed = {name: files.site.reveal(value) for name, value in settings.items()}
    write_private(files.properties, to_properties(revealed))


def _command(java: Java, files: ServerFiles, jars: Sequence[Path]) -> list[str]:
    compute = files.compute
    arguments = ["--class", SERVER_CLASS, "--master", master(compute)]
    arguments += ["--properties-file", str(files.properties), "spark-internal"]
    further = compute.conf.get("spark.driver.extraJavaOptions", "")
    options = [
        f"-Xmx{driver_memory(compute)}",
        # Exit on out-of-memory: a dead server is restarted, a half-dead one is not.
        "-XX:+ExitOnOutOfMemoryError",
        f"-Djava.io.tmpdir={files.work}",
        f"-Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}",
        f"-Dfloe.log.file={files.log}",
        f"-Dderby.system.home={files.folder}",
        *(shlex.split(further) if isinstance(further, str) else []),
    ]
    return spark_submit(java, arguments, options=options, jars=jars)


def _environ(java: Java, files: ServerFiles) -> dict[str, str]:
    given = files.site.environ
    paths = [str(files.site.root), *given.get("PYTHONPATH", "").split(os.pathsep)]
    # Python functions run in the Python that defines them, and can import the project's modules.
    environ = {
        **spark_environ(java, given),
        "PYSPARK_PYTHON": given.get("PYSPARK_PYTHON", sys.executable),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    if "spark.local.dir" not in files.compute.conf:
        environ.setdefault("SPARK_LOCAL_DIRS", str(files.work))
    if not on_loopback(files.compute) and "SPARK_LOCAL_IP" not in given:
        # The workers of a cluster cannot reach the driver on loopback.
        environ.pop("SPARK_LOCAL_IP")
    return environ


def _detach(command: Sequence[str], environ: Mapping[str, str], files: ServerFiles) -> int:
    for folder in (files.log.parent, files.work):
        make_private_folder(folder)
    if files.output.exists():
        files.output.replace(files.output.with_suffix(".out.1"))
    # The JVM keeps the user's umask, because it writes users' data; floe's own files are created
    # beforehand with private permissions.
    for file in filter(None, (files.log, files.output, lake_file(files.site))):
        make_private_folder(file.parent)
        make_private_file(file)
    subprocess.run(  # noqa: S603
        ["/bin/sh", "-c", DETACHED, str(files.output), str(files.pid), *command],
        check=True,
        cwd=files.folder,
        env=dict(environ),
        start_new_session=True,
    )
    return int(files.pid.read_text())


def end_jvm(files: ServerFiles) -> None:
    """Stop a JVM whose start was interrupted."""
    with suppress(OSError, ValueError):
        pid = int(files.pid.read_text())
        if start := start_of(pid):
            end_process(pid, start)


def free_port() -> int:
    """Return a free port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    """Tell whether a process listens on a port of the loopback interface."""
    try:
        socket.create_connection((LOOPBACK, port), timeout=1).close()
    except OSError:
        return False
    return True


def to_properties(settings: Mapping[str, str]) -> str:
    """Return the settings as a Java properties file."""
    lines = (f"{_escape(key, IN_KEYS)}={_value(text)}\n" for key, text in settings.items())
    return "".join(lines)


def _value(text: str) -> str:
    # Java ignores unescaped blanks before a value.
    blanks = len(text) - len(text.lstrip(" "))
    return "\\ " * blanks + _escape(text[blanks:], SPECIAL)


def _escape(text: str, special: Mapping[str, str]) -> str:
    return "".join(special.get(character, character) for character in text)
