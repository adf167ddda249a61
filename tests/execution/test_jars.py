"""Spark's jars are fetched once and completely, by the first caller."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from floe.execution import jars
from floe.execution.jars import (
    SPARK_PACKAGES,
    JarsNotFetchedError,
    jar_cache,
    resolve_jars,
)

SMALL = ("org.checkerframework:checker-qual:3.42.0",)


class FakeSpark:
    """A fake resolver that writes a jar to the given folder and counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, arguments: list[str], _home: Path, progress: jars.Progress) -> None:
        self.calls += 1
        setting = next(value for value in arguments if value.startswith("spark.jars.ivy="))
        home = Path(setting.removeprefix("spark.jars.ivy=")) / "jars"
        home.mkdir()
        progress("fetching a.jar")
        time.sleep(0.05)
        (home / "a.jar").write_text("jar")


@pytest.fixture
def fake_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSpark:
    """An empty cache, and no real Spark to fill it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    spark = FakeSpark()
    monkeypatch.setattr(jars, "_run", spark)
    return spark


def test_jars_are_fetched_once(fake_spark: FakeSpark) -> None:
    lines: list[str] = []
    first = resolve_jars(SMALL, progress=lines.append)
    assert resolve_jars(SMALL) == first
    assert [jar.name for jar in first] == ["a.jar"]
    assert (fake_spark.calls, lines) == (1, ["fetching a.jar"])


def test_other_packages_are_kept_apart(fake_spark: FakeSpark) -> None:
    assert resolve_jars(SMALL) != resolve_jars(SPARK_PACKAGES)
    assert fake_spark.calls == 2


def test_the_order_of_packages_does_not_matter(fake_spark: FakeSpark) -> None:
    assert resolve_jars(SPARK_PACKAGES) == resolve_jars(SPARK_PACKAGES[::-1])


def test_concurrent_callers_share_one_fetch(fake_spark: FakeSpark) -> None:
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(resolve_jars, [SMALL] * 4))
    assert results[1:] == results[:-1]
    assert fake_spark.calls == 1


@pytest.mark.parametrize("damage", [Path.unlink, lambda jar: jar.write_text("j")])
def test_a_missing_or_truncated_jar_is_fetched_again(fake_spark: FakeSpark, damage: object) -> None:
    [jar] = resolve_jars(SMALL)
    damage(jar)  # type: ignore[operator]
    assert resolve_jars(SMALL) == [jar]
    assert jar.read_text() == "jar"


def test_the_cache_folder_follows_xdg_cache_home(tmp_path: Path) -> None:
    assert jar_cache({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "floe" / "jars"
    assert jar_cache({}) == Path.home() / ".cache" / "floe" / "jars"
    assert jar_cache({"XDG_CACHE_HOME": "relative"}) == jar_cache({})


@pytest.mark.java
@pytest.mark.slow
def test_spark_has_all_its_jars() -> None:
    names = " ".join(jar.name for jar in resolve_jars(SPARK_PACKAGES))
    for package in SPARK_PACKAGES:
        assert package.split(":")[1] in names


@pytest.mark.java
@pytest.mark.slow
def test_a_killed_fetch_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    fetch = f"from floe.execution.jars import resolve_jars; resolve_jars({SMALL})"
    killed = subprocess.Popen([sys.executable, "-c", fetch], start_new_session=True)
    while not list(tmp_path.glob("floe/jars/*/attempt-*")):
        time.sleep(0.01)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    assert [jar.stat().st_size > 200_000 for jar in resolve_jars(SMALL)] == [True]
    assert not list(tmp_path.glob("floe/jars/*/attempt-*"))


@pytest.mark.java
@pytest.mark.slow
def test_a_package_that_does_not_exist_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(JarsNotFetchedError, match=r"no-such-jar.*python -m floe.execution.jars"):
        resolve_jars(["org.example:no-such-jar:1.0"])


@pytest.mark.java
@pytest.mark.slow
def test_a_broken_maven_repository_in_the_home_folder_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable points the JVM to a home folder with a broken repository."""
    home = plant_pom_without_jar(tmp_path / "home")
    options = os.environ.get("JAVA_TOOL_OPTIONS", "")
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"{options} -Duser.home={home}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert [jar.stat().st_size > 200_000 for jar in resolve_jars(SMALL)] == [True]


def plant_pom_without_jar(home: Path) -> Path:
    """Create a Maven repository like one left by an interrupted build."""
    group, name, version = SMALL[0].split(":")
    folder = home.joinpath(".m2", "repository", *group.split("."), name, version)
    folder.mkdir(parents=True)
    pom = f"<groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
    model = "<modelVersion>4.0.0</modelVersion>"
    (folder / f"{name}-{version}.pom").write_text(f"<project>{model}{pom}</project>")
    return home
