"""Install everything that floe needs; quick if nothing has changed.

Runs on the system's Python with the standard library only.
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
    """Update each part; print what is done and how long it took."""
    if sys.version_info < OLDEST_PYTHON:
        have = ".".join(map(str, sys.version_info[:3]))
        print(f"floe needs Python 3.11 or newer; this is {have}. Try: make PYTHON=python3.11")
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
    """Run a step of the setup unless its stamp is current."""
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
    name: str, wanted: range, installed: int | None, requirements: str
) -> tuple[str, str, Callable[[], None] | None]:
    """Use the system's runtime if its version is suitable, else install it from PyPI."""
    if installed in wanted:
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
    """Fill the cache of Spark's jars. It belongs to the user, so it has no stamp."""
    subprocess.run([python(), "-m", "floe.execution.jars", "--quiet"], check=True, cwd=ROOT)


def pip_install(*arguments: str) -> None:
    # The file lists all dependencies. Resolving them again, pip would refuse packages that are
    # pinned with an extra and required without it.
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
    """Return the major version of a program, or None if it is not installed."""
    if shutil.which(program) is None:
        return None
    answer = subprocess.run([program, flag], capture_output=True, text=True, check=False)
    match = re.search(r"(?:version \"|v)(\d+)", answer.stdout + answer.stderr)
    return int(match.group(1)) if match else None


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as failed:
        command = " ".join(map(str, failed.cmd))
        print(
            f"setup: '{command}' failed with exit code {failed.returncode}. See its output above."
        )
        sys.exit(1)
    except KeyboardInterrupt:
        print("setup: stopped. Run it again to continue.")
        sys.exit(130)
