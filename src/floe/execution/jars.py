"""Spark's extra jars: pinned, downloaded once by Spark's resolver, then cached."""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from floe.errors import FloeError
from floe.execution.java import find_java, spark_environ, spark_submit

SPARK_PACKAGES = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    "org.xerial:sqlite-jdbc:3.47.1.0",
    "org.postgresql:postgresql:42.7.4",
)
# The listener that legacy Spark jobs report with. Only tests use it.
OPENLINEAGE_PACKAGES = ("io.openlineage:openlineage-spark_2.13:1.53.0",)
# spark-submit needs a program to run after the download; this one exists and exits immediately.
NO_OP_PROGRAM = ("--class", "org.apache.derby.tools.sysinfo", "spark-internal")
MARKER = "fetched.json"

Progress = Callable[[str], None]


class JarsNotFetchedError(FloeError):
    """Spark's resolver could not fetch a jar."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"Spark's jars could not be fetched: {reason}. Check the network, or set "
            "DEFAULT_ARTIFACT_REPOSITORY to your company's Maven mirror, "
            "and run: python -m floe.execution.jars"
        )


def resolve_jars(packages: Sequence[str], progress: Progress = lambda line: None) -> list[Path]:
    """Return the jars of these Maven packages and their dependencies.

    The first caller downloads them, others wait for it. The marker is written last, so an
    interrupted download starts over.
    """
    folder = jar_cache() / _folder_name(packages)
    jars = _fetched(folder)
    if jars is not None:
        return jars
    with _locked(folder):
        jars = _fetched(folder)
        if jars is None:
            jars = _fetch(folder, packages, progress)
            _write_marker(folder, jars)
        return jars


def jar_cache(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of downloaded jars, which has a subfolder per set of packages."""
    environ = os.environ if environ is None else environ
    named = Path(environ.get("XDG_CACHE_HOME", ""))
    cache = named if named.is_absolute() else Path.home() / ".cache"
    return cache / "floe" / "jars"


def _folder_name(packages: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(sorted(packages)).encode()).hexdigest()[:16]


def _fetched(folder: Path) -> list[Path] | None:
    """Return the jars listed in the marker, or None if any is missing or incomplete."""
    try:
        sizes: dict[str, int] = json.loads((folder / MARKER).read_text())
        complete = all((folder / name).stat().st_size == size for name, size in sizes.items())
    except FileNotFoundError:
        return None
    return [folder / name for name in sizes] if complete else None


def _write_marker(folder: Path, jars: Sequence[Path]) -> None:
    sizes = {str(jar.relative_to(folder)): jar.stat().st_size for jar in jars}
    draft = folder / f"{MARKER}.new"
    draft.write_text(json.dumps(sizes, indent=2))
    draft.replace(folder / MARKER)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    # The operating system releases the lock when its process ends, however it ends.
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(folder: Path, packages: Sequence[str], progress: Progress) -> list[Path]:
    # A new folder each time: the resolver takes a partial jar for a complete one, and a JVM whose
    # caller was killed may still be writing to the old folder.
    for left in folder.glob("attempt-*"):
        shutil.rmtree(left, ignore_errors=True)
    attempt = Path(mkdtemp(prefix="attempt-", dir=folder))
    arguments = ["--master", "local[1]", "--packages", ",".join(packages)]
    settings = ["--conf", f"spark.jars.ivy={attempt}"]
    _run([*arguments, *settings, *NO_OP_PROGRAM], attempt, progress)
    shutil.rmtree(folder / "jars", ignore_errors=True)
    (attempt / "jars").replace(folder / "jars")
    shutil.rmtree(attempt)
    return sorted((folder / "jars").glob("*.jar"))


def _run(arguments: Sequence[str], home: Path, progress: Progress) -> None:
    java = find_java()
    # Ivy also reads the Maven repository in the JVM's home, and fails if that has a pom without
    # its jar, as on many developers' machines. So the JVM gets an empty home.
    command = spark_submit(java, arguments, options=["-Xmx512m", f"-Duser.home={home}"])
    output: list[str] = []
    with subprocess.Popen(  # noqa: S603
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=home,
        env=spark_environ(java),
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            output.append(line.strip())
            if download := re.match(r"downloading \S+/(\S+\.jar)", output[-1]):
                progress(f"fetching {download[1]}")
    if process.returncode != 0:
        raise JarsNotFetchedError(_reason(output))


def _reason(output: Sequence[str]) -> str:
    """Return the line of the resolver's output that names the cause, or its last line."""
    cause = r"unresolved dependency: .*|.*(?:Exception|Error): .*"
    causes = [line.strip(": ") for line in output if re.fullmatch(cause, line.strip(": "))]
    return causes[0] if causes else " ".join(output[-1:]) or "the resolver printed nothing"


def main() -> None:
    """Download the jars that Spark needs, and print where they are (not with --quiet)."""
    try:
        jars = resolve_jars(SPARK_PACKAGES, progress=lambda line: print(line, flush=True))  # noqa: T201
    except FloeError as error:
        sys.exit(str(error))
    if "--quiet" not in sys.argv:
        print(f"{len(jars)} Spark jars in {jars[0].parent}")  # noqa: T201


if __name__ == "__main__":
    main()
