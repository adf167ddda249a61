"""The compiled file: reproducible, complete, unresolved variables, staleness."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from floe.settings import ProjectPaths
from floe.spec import (
    CompiledFileError,
    SpecError,
    compile_project,
    find_stale,
    load_compiled,
    load_project,
    write_compiled,
)
from floe.spec.compiler import is_current

Write = Callable[..., ProjectPaths]

PROJECT = """
    name: credit-risk
    version: 1.10
    timezone: ${ZONE}
    datasets: [datasets/*.yaml]
    processes:
      credit.load:
        inputs: {fx: market.fx_rates}
        outputs: {exposure: credit.exposure}
        sql: sql/exposure.sql
        params: {limit: 10, rate: 0.50, code: "007", flag: true, note: "${NOTE:5}"}
    orchestration:
      jobs: {nightly: {type: batch, selection: ["*"]}}
      schedules:
        night:
          job: nightly
          cron_schedule: 0 2 * * *
          enabled: ${ENABLED:false}
    """
FILES = {
    "datasets/credit.yaml": "credit.exposure:\n  retention: ${KEEP}\n",
    "datasets/market.yaml": "market.fx_rates:\n  format: csv\n",
    "sql/exposure.sql": "select * from fx",
}
ENVIRON = {"ZONE": "Europe/Berlin", "KEEP": "30d", "ENABLED": "true"}


@pytest.fixture
def paths(write: Write) -> ProjectPaths:
    paths = write(PROJECT, FILES)
    write_compiled(paths, compile_project(paths, {}))
    return paths


def content(paths: ProjectPaths) -> dict[str, object]:
    loaded: dict[str, object] = json.loads(paths.compiled.read_text(encoding="utf-8"))
    return loaded


def test_compiled_project_equals_its_sources(paths: ProjectPaths) -> None:
    compiled = load_compiled(paths.compiled, ENVIRON).spec
    assert compiled == load_project(paths, ENVIRON).spec
    assert compiled.version == "1.10"
    assert compiled.processes["credit.load"].params == {
        "limit": 10,
        "rate": 0.5,
        "code": "007",
        "flag": True,
        "note": "5",
    }


def test_compiled_file_keeps_variables_unresolved(paths: ProjectPaths) -> None:
    spec = content(paths)["spec"]
    assert isinstance(spec, dict)
    assert spec["timezone"] == "${ZONE}"
    assert spec["datasets"]["credit.exposure"] == {"retention": "${KEEP}"}
    assert spec["orchestration"]["schedules"]["night"]["enabled"] == "${ENABLED:false}"


def test_compiled_file_lists_its_sources_by_relative_path(paths: ProjectPaths) -> None:
    sources = content(paths)["sources"]
    assert isinstance(sources, list)
    assert [source["path"] for source in sources] == [
        "datasets/credit.yaml",
        "datasets/market.yaml",
        "floe.yaml",
        "sql/exposure.sql",
    ]
    assert str(paths.root) not in paths.compiled.read_text(encoding="utf-8")


def test_same_sources_give_the_same_bytes(paths: ProjectPaths, write: Write) -> None:
    before = paths.compiled.read_bytes()
    write_compiled(paths, compile_project(paths, {"ZONE": "UTC"}))
    assert paths.compiled.read_bytes() == before


def test_error_at_load_names_the_file_and_line_of_the_source(paths: ProjectPaths) -> None:
    with pytest.raises(SpecError) as failure:
        load_compiled(paths.compiled, {"ZONE": "Mars"})
    assert str(failure.value) == (
        "datasets/credit.yaml:2: datasets.credit.exposure.retention: "
        "the variable KEEP is not set. "
        "Set it in the environment, or give it a default: ${KEEP:…}.\n"
        "floe.yaml:4: timezone: 'Mars' is not a time zone. "
        "Write it as Area/City, such as Europe/London."
    )


def test_error_caused_by_a_variable_names_the_nearest_line(write: Write) -> None:
    paths = write(
        """
        name: x
        orchestration:
          partitions:
            daily: {type: time_window, start: "${START}", end: "2026-01-01"}
        """
    )
    write_compiled(paths, compile_project(paths, {}))
    with pytest.raises(SpecError, match=r"floe\.yaml:5: .*daily\.end: the end"):
        load_compiled(paths.compiled, {"START": "2026-06-01"})


def test_project_with_findings_is_not_compiled(write: Write) -> None:
    paths = write("name: x\ntimezone: Mars\n")
    with pytest.raises(SpecError, match=r"floe\.yaml:2"):
        compile_project(paths, {})


def test_fresh_file_is_not_stale(paths: ProjectPaths) -> None:
    assert not find_stale(paths, {}).is_stale


def test_missing_file_is_stale(write: Write) -> None:
    staleness = find_stale(write("name: x"), {})
    assert staleness.is_stale
    assert staleness.missing


def test_changed_added_and_removed_sources_make_it_stale(paths: ProjectPaths) -> None:
    root = paths.root
    (root / "sql/exposure.sql").write_text("select 2", encoding="utf-8")
    (root / "datasets/limits.yaml").write_text("credit.limits:\n", encoding="utf-8")
    (root / "datasets/market.yaml").rename(root / "datasets/rates.yaml")
    assert find_stale(paths, {}).sources == (
        "datasets/limits.yaml",
        "datasets/market.yaml",
        "datasets/rates.yaml",
        "sql/exposure.sql",
    )


def test_edited_compiled_file_is_stale(paths: ProjectPaths) -> None:
    text = paths.compiled.read_text(encoding="utf-8")
    edited = json.loads(text) | {"hash": "0"}
    paths.compiled.write_text(json.dumps(edited), encoding="utf-8")
    assert find_stale(paths, {}).sources == (".floe/compiled_artifacts.json",)


def test_unchanged_sources_are_detected_without_compiling(paths: ProjectPaths) -> None:
    assert is_current(paths)


@pytest.mark.parametrize("name", ["floe.yaml", "datasets/credit.yaml", "sql/exposure.sql"])
def test_changed_source_is_detected_without_compiling(paths: ProjectPaths, name: str) -> None:
    file = paths.root / name
    file.write_text(file.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert not is_current(paths)


def test_newly_included_file_is_detected_without_compiling(paths: ProjectPaths) -> None:
    file = paths.root / "datasets/limits.yaml"
    file.write_text("credit.limits:\n", encoding="utf-8")
    assert not is_current(paths)
    file.unlink()
    assert is_current(paths)


@pytest.mark.parametrize("name", ["datasets/market.yaml", "sql/exposure.sql"])
def test_removed_source_is_detected_without_compiling(paths: ProjectPaths, name: str) -> None:
    (paths.root / name).unlink()
    assert not is_current(paths)


@pytest.mark.parametrize("word", ["credit-risk", '"format": 1,', "hash"])
def test_edited_compiled_file_is_detected_without_compiling(paths: ProjectPaths, word: str) -> None:
    text = paths.compiled.read_text(encoding="utf-8")
    assert word in text
    paths.compiled.write_text(text.replace(word, f"{word} "), encoding="utf-8")
    assert not is_current(paths)


def test_missing_compiled_file_is_not_current(write: Write) -> None:
    assert not is_current(write("name: x"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not a compiled project"),
        ("[]", "is not a compiled project"),
        ("{}", "is not a compiled project"),
        ('{"format": 99, "spec": {}}', "was compiled by another version of floe"),
        ("[" * 100_000, "is not a compiled project"),
    ],
)
def test_broken_compiled_file_says_what_to_do(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "compiled_artifacts.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CompiledFileError, match=f"{reason}. Run: floe compile"):
        load_compiled(path, {})


def test_missing_compiled_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(CompiledFileError, match=r"does not exist. Run: floe compile"):
        load_compiled(tmp_path / "none.json", {})


def test_failed_write_leaves_the_old_file(
    paths: ProjectPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = paths.compiled.read_bytes()

    def disk_full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("floe.spec.compiler.os.fsync", disk_full)
    with pytest.raises(OSError, match="No space left"):
        write_compiled(paths, compile_project(paths, {}))
    assert paths.compiled.read_bytes() == before
    assert [path.name for path in paths.state_dir.iterdir()] == ["compiled_artifacts.json"]
