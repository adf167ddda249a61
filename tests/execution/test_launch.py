"""The command line and the environment of a Spark JVM."""

from pathlib import Path

import pytest

from floe.execution import launch
from floe.execution.java import Java
from floe.execution.launch import SparkMissingError, spark_environ, spark_home, spark_submit

JAVA = Java(Path("/opt/java/bin/java"), 17)


def test_spark_is_found_where_pip_put_it() -> None:
    assert (spark_home() / "jars").is_dir()


def test_without_pyspark_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "find_spec", lambda name: None)
    with pytest.raises(SparkMissingError, match=r"pip install 'floe\[spark\]'"):
        spark_home()


def test_the_command_hands_its_arguments_to_the_submitter() -> None:
    command = spark_submit(JAVA, ["--version"], options=["-Xmx1g"], jars=[Path("/j/a.jar")])
    assert command[:2] == ["/opt/java/bin/java", "-cp"]
    assert command[2].endswith(":/j/a.jar")
    assert command[-3:] == ["-Xmx1g", "org.apache.spark.deploy.SparkSubmit", "--version"]
    assert "--add-opens=java.base/java.nio=ALL-UNNAMED" in command
    assert not [part for part in command if "incubator" in part]


def test_a_server_does_not_inherit_what_is_meant_for_clients() -> None:
    environ = spark_environ(JAVA, {"SPARK_REMOTE": "sc://localhost", "LANG": "C.UTF-8"})
    assert "SPARK_REMOTE" not in environ
    assert environ["LANG"] == "C.UTF-8"
    assert environ["JAVA_HOME"] == "/opt/java"
    assert environ["SPARK_HOME"] == str(spark_home())


def test_the_address_to_bind_to_can_be_chosen() -> None:
    assert spark_environ(JAVA, {})["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert spark_environ(JAVA, {"SPARK_LOCAL_IP": "10.0.0.7"})["SPARK_LOCAL_IP"] == "10.0.0.7"
