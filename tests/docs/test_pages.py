"""Links of pages work, and guides name files and functions that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "floe"
PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "demo").glob("*/README.md"),
]
GUIDES = [ROOT / "docs" / "tour.md", ROOT / "docs" / "architecture.md", ROOT / "CONTRIBUTING.md"]


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_link_of_a_page_works(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith(("http://", "https://")):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def sources(path: str) -> list[Path]:
    """Return the files that a path in a page may refer to: by its end, or by its whole path."""
    if (ROOT / path).is_file():
        return [ROOT / path]
    return [file for file in SOURCE.rglob("*.py") if f"/{file.as_posix()}".endswith(f"/{path}")]


@pytest.mark.parametrize("page", GUIDES, ids=named)
def test_a_guide_names_only_files_and_functions_that_exist(page: Path) -> None:
    missing = []
    for path, name in re.findall(r"`([\w/]+\.py)(?:: (\w+))?", page.read_text()):
        texts = [file.read_text() for file in sources(path) if file.is_file()]
        definition = rf"^\s*(?:async def|def|class) {name}\b" if name else ""
        if not any(re.search(definition, text, re.MULTILINE) for text in texts):
            missing.append(f"{path}: {name}")
    assert missing == []
