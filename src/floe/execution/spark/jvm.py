"""The JVM of a Spark Connect server: its command line, and its birth as a process of its own."""

import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from floe.execution.jars import SPARK_PACKAGES, Progress, resolve_jars
from floe.execution.java import Java, find_java
from floe.execution.launch import spark_environ, spark_submit
from floe.execution.spark.lake import lake_file
from floe.execution.spark.place import ServerPlace
from floe.execution.spark.processes import end_process, start_of
from floe.execution.spark.properties import to_properties, write_private
from floe.execution.spark.settings import (
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
# Spark 4 takes only clients with the token that it finds here. Others cannot read a process's
# environment, while its command line is open to all.
TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105
# The shell ends at once: the JVM is nobody's child, survives its caller and leaves no remains.
DETACHED = 'output="$0" pid="$1"; shift; "$@" </dev/null >"$output" 2>&1 & echo $! >"$pid"'


def start_jvm(place: ServerPlace, port: int, token: str, progress: Progress) -> int:
    """Start a server that is to listen on a port; return its process."""
    jars = resolve_jars(sorted({*SPARK_PACKAGES, *place.compute.packages}), progress)
    progress("starting Spark")
    java = find_java(place.site.environ)
    _write_properties(place, port, jars)
    environ = _environ(java, place) | {TOKEN_VARIABLE: token}
    return _detach(_command(java, place, jars), environ, place)


def _write_properties(place: ServerPlace, port: int, jars: Sequence[Path]) -> None:
    settings = server_settings(place.site, place.profile)
    settings["spark.connect.grpc.binding.port"] = str(port)
    if not is_local(place.compute):
        settings["spark.jars"] = ",".join(map(str, jars))
    revealed = {name: place.site.reveal(value) for name, value in settings.items()}
    write_private(place.properties, to_properties(revealed))


def _command(java: Java, place: ServerPlace, jars: Sequence[Path]) -> list[str]:
    compute = place.compute
    arguments = ["--class", SERVER_CLASS, "--master", master(compute)]
    arguments += ["--properties-file", str(place.properties), "spark-internal"]
    further = compute.conf.get("spark.driver.extraJavaOptions", "")
    options = [
        f"-Xmx{driver_memory(compute)}",
        # Half dead it would be of no use to anybody; dead it is started again.
        "-XX:+ExitOnOutOfMemoryError",
        f"-Djava.io.tmpdir={place.work}",
        f"-Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}",
        f"-Dfloe.log.file={place.log}",
        f"-Dderby.system.home={place.folder}",
        *(shlex.split(further) if isinstance(further, str) else []),
    ]
    return spark_submit(java, arguments, options=options, jars=jars)


def _environ(java: Java, place: ServerPlace) -> dict[str, str]:
    given = place.site.environ
    paths = [str(place.site.root), *given.get("PYTHONPATH", "").split(os.pathsep)]
    # Python functions are run by the Python that they come from, and find the project's modules.
    environ = {
        **spark_environ(java, given),
        "PYSPARK_PYTHON": given.get("PYSPARK_PYTHON", sys.executable),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    if "spark.local.dir" not in place.compute.conf:
        environ.setdefault("SPARK_LOCAL_DIRS", str(place.work))
    if not on_loopback(place.compute) and "SPARK_LOCAL_IP" not in given:
        # The workers of a cluster could not reach it there.
        environ.pop("SPARK_LOCAL_IP")
    return environ


def _detach(command: Sequence[str], environ: Mapping[str, str], place: ServerPlace) -> int:
    for folder in (place.log.parent, place.work):
        make_private_folder(folder)
    if place.output.exists():
        place.output.replace(place.output.with_suffix(".out.1"))
    # The JVM keeps the user's umask, because it writes the data of users; what is floe's own has
    # its permissions from the start.
    for file in filter(None, (place.log, place.output, lake_file(place.site))):
        make_private_folder(file.parent)
        make_private_file(file)
    subprocess.run(  # noqa: S603
        ["/bin/sh", "-c", DETACHED, str(place.output), str(place.pid), *command],
        check=True,
        cwd=place.folder,
        env=dict(environ),
        start_new_session=True,
    )
    return int(place.pid.read_text())


def end_jvm(place: ServerPlace) -> None:
    """End a JVM whose start was broken off, at whatever moment."""
    with suppress(OSError, ValueError):
        pid = int(place.pid.read_text())
        if start := start_of(pid):
            end_process(pid, start)


def free_port() -> int:
    """Return a port of loopback that nobody uses now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    """Tell whether somebody listens on a port of loopback."""
    try:
        socket.create_connection((LOOPBACK, port), timeout=1).close()
    except OSError:
        return False
    return True
