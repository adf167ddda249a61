"""Parsing of one YAML file: a plain tree, and findings with their line."""

from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floe.spec.document import MAX_BYTES, Lines, YamlSource, parse_yaml, read_yaml
from floe.spec.yaml_tree import Plain, typed


def parse(text: str) -> YamlSource:
    return parse_yaml(dedent(text).lstrip("\n"), "floe.yaml")


def finding(text: str) -> str:
    (only,) = parse(text).findings
    return str(only)


def test_scalars_stay_as_written() -> None:
    tree = parse("{version: 1.10, country: NO, due: 18:30, day: 2026-09-01, id: 007}").tree
    assert tree == {
        "version": "1.10",
        "country": "NO",
        "due": "18:30",
        "day": "2026-09-01",
        "id": "007",
    }


def test_unquoted_numbers_and_booleans_are_marked() -> None:
    tree = parse("{a: 5, b: '5', c: true, d: 'true', e: True, f: 0.50, g: 1e3}").tree
    assert typed(tree) == {
        "a": 5,
        "b": "5",
        "c": True,
        "d": "true",
        "e": True,
        "f": 0.5,
        "g": 1000.0,
    }


@pytest.mark.parametrize("written", ["", "~", "null"])
def test_empty_values_are_none(written: str) -> None:
    assert parse(f"owner: {written}").tree == {"owner": None}


def test_lines_of_keys_and_values_are_found() -> None:
    source = parse(
        """
        name: credit-risk
        datasets:
          credit.exposure:
            checks:
              - {name: a}
              - name: b
                expect: "= 0"
        """
    )
    assert source.lines(("datasets", "credit.exposure")) == Lines(3, 4)
    assert source.lines(("datasets", "credit.exposure", "checks", 1, "expect")) == Lines(7, 7)
    assert source.lines(("datasets", "credit.exposure", "owner", "team")) == Lines(3, 4)


def test_merge_key_adds_missing_keys() -> None:
    source = parse(
        """
        x-owner: &owner
          team: Credit Risk
          email: credit@example.com
        owner:
          <<: *owner
          email: desk@example.com
        """
    )
    assert source.tree["owner"] == {"team": "Credit Risk", "email": "desk@example.com"}
    assert source.lines(("owner", "team")).key == 2
    assert source.lines(("owner", "email")).key == 6


def test_merge_key_accepts_a_list_of_mappings() -> None:
    tree = parse("a: &a {x: 1}\nb: &b {x: 2, y: 3}\nc: {<<: [*a, *b]}").tree
    assert typed(tree["c"]) == {"x": 1, "y": 3}


def test_merge_key_rejects_text() -> None:
    assert finding("a: {<<: b}") == (
        "floe.yaml:1: a: '<<' takes a mapping. Write it as '<<: *anchor'."
    )


def test_duplicate_key_reports_both_lines() -> None:
    text = """
        datasets:
          credit.exposure: {format: csv}
          credit.exposure: {format: parquet}
        """
    assert finding(text) == (
        "floe.yaml:3: datasets.credit.exposure: the key 'credit.exposure' is duplicated; "
        "first on line 2. Keep one of them."
    )


@pytest.mark.parametrize(
    "tag", ["!!python/object/apply:os.system", "!include", "!!binary", "!!set", "!!timestamp"]
)
def test_tags_that_build_objects_are_rejected(tag: str) -> None:
    assert finding(f"a: {tag} x").startswith("floe.yaml:1: a: the tag ")


def test_tags_of_plain_data_are_allowed() -> None:
    source = parse("{a: !!str 5, b: !!int '5', c: !!seq [1], d: !!map {x: y}}")
    assert not source.findings
    assert typed(source.tree) == {"a": "5", "b": 5, "c": [1], "d": {"x": "y"}}


def test_key_that_is_a_list_is_rejected() -> None:
    assert finding("? [a, b]\n: c").startswith("floe.yaml:1: a key must be text.")


@pytest.mark.parametrize(
    ("text", "line", "hint"),
    [
        ("a: 1\n\tb: 2", 2, "Indent with spaces, not tabs."),
        ("a: 1\n---\nb: 2", 2, "Keep one document in the file: remove the '---' line."),
        ("a: {due: ${DUE:06:30}}", 1, 'Put the value in quotes: "${NAME:default}".'),
        ("a: b: c", 1, "Check the indentation, and quote text that contains ': '."),
        ("a: [1, 2", 1, "Check the indentation, quotes and brackets around this line."),
        ("a: @x", 1, "Quote text that starts with @, % or `."),
        ("a: *missing", 1, "Check the indentation, quotes and brackets around this line."),
        ("a: \x07", 1, "Check the indentation, quotes and brackets around this line."),
    ],
)
def test_syntax_error_says_where_and_what_to_do(text: str, line: int, hint: str) -> None:
    (only,) = parse_yaml(text, "floe.yaml").findings
    assert (only.line, only.hint) == (line, hint)
    assert only.message.startswith("not valid YAML: ")


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text", ["[" * 100_000, "- " * 100_000, "{a: " * 100_000, "? " * 10_000, "a: &a [*a]"]
)
def test_endless_nesting_is_a_finding(text: str) -> None:
    (only,) = parse_yaml(text, "floe.yaml").findings
    assert "nested deeper than" in only.message


@pytest.mark.timeout(60)
def test_billion_laughs_attack_is_a_finding() -> None:
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 20)]
    (only,) = parse_yaml("\n".join(lines), "floe.yaml").findings
    assert only.message == "too many values after expanding aliases"


@pytest.mark.timeout(60)
def test_multiplying_merge_keys_are_a_finding() -> None:
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}]}}" for i in range(1, 20)]
    (only,) = parse_yaml("\n".join(lines), "floe.yaml").findings
    assert only.message == "too many values after expanding aliases"


def test_too_large_file_is_not_parsed(tmp_path: Path) -> None:
    path = tmp_path / "floe.yaml"
    path.write_bytes(b"a" * (MAX_BYTES + 1))
    (only,) = read_yaml(path, "floe.yaml").findings
    assert only.message == f"the file has {MAX_BYTES + 1:,} bytes; the maximum is {MAX_BYTES:,}"


def test_file_that_is_not_text_reports_the_line(tmp_path: Path) -> None:
    path = tmp_path / "floe.yaml"
    path.write_bytes(b"name: x\ndescription: caf\xe9\n")
    (only,) = read_yaml(path, "floe.yaml").findings
    assert str(only) == "floe.yaml:2: not UTF-8 text. Save the file as UTF-8."


def test_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "floe.yaml"
    path.write_bytes(b"\xef\xbb\xbfname: x\n")
    assert read_yaml(path, "floe.yaml").tree == {"name": "x"}


def test_variables_are_recorded_with_their_path() -> None:
    source = parse("a: {b: ['${X}', plain]}\nc: ${Y:5}")
    assert source.variables == (("a", "b", 0), ("c",))
    assert isinstance(source.tree["c"], Plain)
    assert not isinstance(source.tree["a"]["b"][0], Plain)


@settings(max_examples=300)
@given(st.text(alphabet="ab: -[]{}&*!|>'\"#%@`\n\t?,~<.01$\\", max_size=80))
def test_any_text_gives_a_tree_or_findings(text: str) -> None:
    source = parse_yaml(text, "floe.yaml")
    assert source.is_readable or source.findings
    source.lines(("a", 0, "b"))


@given(st.binary(max_size=60))
def test_any_bytes_give_a_tree_or_findings(content: bytes) -> None:
    text = content.decode("utf-8", errors="replace")
    source = parse_yaml(text, "floe.yaml")
    assert source.is_readable or source.findings
