"""Formats are found by name: built-in ones, and those of installed packages."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from floe.execution.formats.csv import CsvFormat
from floe.execution.formats.registry import (
    BUILT_IN_FORMATS,
    FormatNotLoadedError,
    UnknownFormatError,
    format_named,
)
from floe.spec.formats import BUILT_IN, installed_formats
from tests.execution.formats.factory import put


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    format_named.cache_clear()
    installed_formats.cache_clear()
    yield
    format_named.cache_clear()
    installed_formats.cache_clear()


def test_every_built_in_format_has_an_implementation() -> None:
    assert {entry.name for entry in BUILT_IN_FORMATS} == set(BUILT_IN)
    for name in BUILT_IN:
        assert format_named(name).name == name
    assert isinstance(format_named("csv"), CsvFormat)


def test_an_unknown_format_gets_a_suggestion() -> None:
    with pytest.raises(UnknownFormatError, match=r"'parqet' is installed\. Did you mean 'parquet'"):
        format_named("parqet")


def test_a_format_that_cannot_be_loaded_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "[floe.formats]\nbroken = no_such_module:Broken\n"
    put(tmp_path / "broken-1.0.dist-info/entry_points.txt", text)
    put(tmp_path / "broken-1.0.dist-info/METADATA", "Name: broken\nVersion: 1.0\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(FormatNotLoadedError, match=r"'broken' .* no_such_module:Broken"):
        format_named("broken")
