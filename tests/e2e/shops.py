"""Copies of the demo shop, and what runs in them."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHOP = ROOT / "demo" / "data_engineering"
MADE_BY_RUNS = shutil.ignore_patterns(".floe", "target", "logs", "__pycache__")


def copy_shop(folder: Path) -> Path:
    """Copy the demo as one has it after a clone."""
    return Path(shutil.copytree(SHOP, folder, ignore=MADE_BY_RUNS))


def start_demo(shop: Path) -> "subprocess.Popen[str]":
    """Start what `make demo` starts, without a terminal."""
    return subprocess.Popen(
        [sys.executable, "-m", "tools.demo", "--project", str(shop)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def processes_of(shop: Path) -> list[str]:
    """Return what runs for a shop: everything that floe starts is told of its project."""
    mark = f"FLOE_PROJECT={shop}\0".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue  # it has ended, or is another user's
    return found
