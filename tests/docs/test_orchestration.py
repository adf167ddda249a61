"""docs/reference/orchestration.md names an existing test for every requirement."""

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
    *(f"FR-{index:03}" for index in range(1, 49)),
    *(f"SC-{index:03}" for index in range(1, 11)),
    *(f"US-{story}.{index}" for story, count in STORIES.items() for index in range(1, count + 1)),
    *(f"EC-{index}" for index in range(1, 9)),
]


def test_every_requirement_is_listed_once_and_in_order() -> None:
    assert re.findall(r"^\| ((?:FR|SC|US|EC)-[\d.]+) \|", PAGE, re.MULTILINE) == REQUIREMENTS


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_the_tests_of_a_requirement_exist(name: str) -> None:
    assert ROWS[name]
    for file, test in ROWS[name]:
        assert re.search(rf"^ *def {test}\(", (TESTS / file).read_text(), re.MULTILINE), test
