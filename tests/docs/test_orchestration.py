"""docs/reference/orchestration.md names a test for every requirement, and each of them exists."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
PAGE = (TESTS.parent / "docs" / "reference" / "orchestration.md").read_text()
ROWS = {
    name: re.findall(r"`([\w/]+\.py)::(\w+)`", shown)
    for name, shown in re.findall(
        r"^\| ((?:FR|SC|US|EC)-[\d.]+) \| [^|]+ \| (.+) \|$", PAGE, re.MULTILINE
    )
}
STORIES = {1: 3, 2: 3, 3: 4, 4: 3, 5: 3, 6: 3}
"""How many acceptance scenarios each user story has."""
REQUIREMENTS = [
    *(f"FR-{number:03}" for number in range(1, 49)),
    *(f"SC-{number:03}" for number in range(1, 11)),
    *(f"US-{story}.{number}" for story, most in STORIES.items() for number in range(1, most + 1)),
    *(f"EC-{number}" for number in range(1, 9)),
]


def test_every_requirement_has_its_line_once_and_in_order() -> None:
    assert re.findall(r"^\| ((?:FR|SC|US|EC)-[\d.]+) \|", PAGE, re.MULTILINE) == REQUIREMENTS


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_what_shows_a_requirement_exists(name: str) -> None:
    assert ROWS[name]
    for file, test in ROWS[name]:
        assert re.search(rf"^ *def {test}\(", (TESTS / file).read_text(), re.MULTILINE), test
