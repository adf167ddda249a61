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
    """Return the browser's path; install it as root; skip the test if there is none."""
    if not _installed() and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (("apt-get", "update"), INSTALL):
            subprocess.run(command, env=quiet, capture_output=True, check=False)
    if not (program := _installed()):
        pytest.skip("Chromium is not installed. Run: apt install chromium")
    return program


def _installed() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def open_page(
    folder: Path, harmless: tuple[str, ...] = (), arguments: tuple[str, ...] = ()
) -> Iterator[Page]:
    """Open a browser; console errors fail the test, except harmless ones."""
    errors: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch_persistent_context(
            folder,
            executable_path=find_browser(),
            args=[*ARGUMENTS, *arguments],
            viewport={"width": WIDTH, "height": HEIGHT},
        )
        page = browser.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
        yield page
        browser.close()
    unexpected = [line for line in errors if not any(words in line for words in harmless)]
    assert not unexpected, unexpected
