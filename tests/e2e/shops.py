"""Copies of the demo shop, and the processes that run in them."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHOP = ROOT / "demo" / "data_engineering"
GENERATED = shutil.ignore_patterns(".floe", "target", "logs", "__pycache__")


def copy_shop(folder: Path) -> Path:
    """Copy the demo as it is after a clone."""
    return Path(shutil.copytree(SHOP, folder, ignore=GENERATED))


def start_demo(shop: Path) -> "subprocess.Popen[str]":
    """Start `make demo` without a terminal."""
    return subprocess.Popen(
        [sys.executable, "-m", "tools.demo", "--project", str(shop)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def processes_of(shop: Path) -> list[str]:
    """Return the processes of a shop: all that floe starts have FLOE_PROJECT set."""
    variable = f"FLOE_PROJECT={shop}\0".encode()
    commands = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if variable in (folder / "environ").read_bytes():
                commands.append((folder / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue  # it has ended, or is another user's
    return commands
