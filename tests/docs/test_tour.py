"""docs/tour.md: each of its stories stays within the number of files that it promises."""

import re
from pathlib import Path

import pytest

TOUR = (Path(__file__).parents[2] / "docs" / "tour.md").read_text()
MOST_FILES = {"1. An event arrives": 12, "2. A process runs": 14, "3. A schedule fires": 9}


def files_of_sections() -> dict[str, set[str]]:
    """The distinct files that each section names, by the start of its heading."""
    sections = re.split(r"^## ", TOUR, flags=re.MULTILINE)[1:]
    return {
        text.partition(":")[0]: set(re.findall(r"[\w./-]+\.(?:py|ya?ml|sql|toml)\b", text))
        for text in sections
    }


def test_the_tour_has_exactly_these_stories() -> None:
    assert files_of_sections().keys() == MOST_FILES.keys()


@pytest.mark.parametrize(("story", "most"), MOST_FILES.items())
def test_a_story_names_no_more_files_than_promised(story: str, most: int) -> None:
    files = files_of_sections()[story]
    assert 0 < len(files) <= most, sorted(files)
