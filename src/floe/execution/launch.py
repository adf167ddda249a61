"""How a JVM of Spark is started from pip's pyspark, without its shell scripts."""

import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from floe.errors import FloeError
from floe.execution.java import Java

# What Spark's own launcher passes (SPARK_PRINT_LAUNCH_COMMAND=1 shows it), but for the vector
# module: the Java from PyPI lacks it, and a local Spark does not need it.
OPENED = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENED),
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "--enable-native-access=ALL-UNNAMED",
    "-Dderby.connection.requireAuthentication=false",
)
# What makes a JVM, or the Python that it starts, look for a server instead of being one. A client
# in this very process sets some of them.
OF_CLIENTS = frozenset({"SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED"})


class SparkMissingError(FloeError):
    """pyspark is not installed."""

    def __init__(self) -> None:
        super().__init__("Spark is not installed. Run: pip install 'floe[spark]'")


def spark_home() -> Path:
    """Return the folder of pip's pyspark, without importing it."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise SparkMissingError
    return Path(found.origin).parent


def spark_submit(
    java: Java, arguments: Sequence[str], options: Sequence[str] = (), jars: Sequence[Path] = ()
) -> list[str]:
    """Return the command line that hands these arguments to Spark's submitter."""
    home = spark_home()
    classpath = [home / "conf", home / "jars" / "*", *jars]
    return [
        str(java.executable),
        "-cp",
        os.pathsep.join(map(str, classpath)),
        *java.options,
        *OPTIONS,
        *options,
        "org.apache.spark.deploy.SparkSubmit",
        *arguments,
    ]


def spark_environ(java: Java, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment that such a JVM is to be started in."""
    environ = os.environ if environ is None else environ
    kept = {name: value for name, value in environ.items() if name not in OF_CLIENTS}
    return {
        "SPARK_LOCAL_IP": "127.0.0.1",
        **kept,
        "SPARK_HOME": str(spark_home()),
        "JAVA_HOME": str(java.home),
    }
