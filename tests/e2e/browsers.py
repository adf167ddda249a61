"""A real browser for tests: Debian's Chromium, driven by playwright."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
INSTALL = ("apt-get", "install", "--yes", "--no-install-recommends", "chromium")
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDTH, HEIGHT = 2000, 1400


def find_browser() -> str:
    """Return the browser's program, installing it where that is allowed; skip without one."""
    if not _found() and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (("apt-get", "update"), INSTALL):
            subprocess.run(command, env=quiet, capture_output=True, check=False)
    if not (program := _found()):
        pytest.skip("There is no Chromium here, and it cannot be installed: apt install chromium")
    return program


def _found() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def open_page(
    folder: Path, harmless: tuple[str, ...] = (), arguments: tuple[str, ...] = ()
) -> Iterator[Page]:
    """Open a browser; whatever its console calls an error fails the test, unless it is harmless."""
    wrong: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch_persistent_context(
            folder,
            executable_path=find_browser(),
            args=[*ARGUMENTS, *arguments],
            viewport={"width": WIDTH, "height": HEIGHT},
        )
        page = browser.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
        yield page
        browser.close()
    unexpected = [line for line in wrong if not any(words in line for words in harmless)]
    assert not unexpected, unexpected
