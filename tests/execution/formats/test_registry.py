"""Formats are found by their name: floe's own, and those of installed packages."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from floe.execution.formats.csv import CsvFormat
from floe.execution.formats.registry import (
    OWN,
    FormatNotLoadedError,
    UnknownFormatError,
    format_named,
)
from floe.spec.formats import BUILT_IN, installed_formats
from tests.execution.formats.places import put


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    format_named.cache_clear()
    installed_formats.cache_clear()
    yield
    format_named.cache_clear()
    installed_formats.cache_clear()


def test_every_format_of_the_language_has_its_code() -> None:
    assert {entry.name for entry in OWN} == set(BUILT_IN)
    for name in BUILT_IN:
        assert format_named(name).name == name
    assert isinstance(format_named("csv"), CsvFormat)


def test_an_unknown_format_is_named_with_its_neighbour() -> None:
    with pytest.raises(UnknownFormatError, match=r"'parqet' is installed\. Did you mean 'parquet'"):
        format_named("parqet")


def test_a_package_whose_format_is_broken_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "[floe.formats]\nbroken = no_such_module:Broken\n"
    put(tmp_path / "broken-1.0.dist-info/entry_points.txt", text)
    put(tmp_path / "broken-1.0.dist-info/METADATA", "Name: broken\nVersion: 1.0\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(FormatNotLoadedError, match=r"'broken' .* no_such_module:Broken"):
        format_named("broken")
