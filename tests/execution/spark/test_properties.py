"""Settings with secrets in them: as Java reads them, and for nobody else to read."""

from pathlib import Path

import pytest

from floe.execution.spark.properties import to_properties, write_private


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("plain=with:signs#and!more", "key=plain=with:signs#and!more\n"),
        ("C:\\data", "key=C:\\\\data\n"),
        ("two\nlines", "key=two\\nlines\n"),
        ("  led by blanks", "key=\\ \\ led by blanks\n"),
    ],
)
def test_a_value_is_read_as_it_was_written(value: str, line: str) -> None:
    assert to_properties({"key": value}) == line


def test_a_key_cannot_end_early() -> None:
    assert to_properties({"a b=c:d": "x"}) == "a\\ b\\=c\\:d=x\n"


def test_only_the_owner_can_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "server.properties"
    write_private(path, "a=b\n")
    write_private(path, "a=c\n")
    assert path.read_text() == "a=c\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]
