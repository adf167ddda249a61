"""Spark's jars are fetched once, whole or not at all, by whoever comes first."""

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
    spark_jars,
)

SMALL = ("org.checkerframework:checker-qual:3.42.0",)


class FakeSpark:
    """Stands in for the resolver: writes a jar where it is told to, and counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, arguments: list[str], _home: Path, progress: jars.Progress) -> None:
        self.calls += 1
        setting = next(one for one in arguments if one.startswith("spark.jars.ivy="))
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


def test_what_is_fetched_once_stays(fake_spark: FakeSpark) -> None:
    said: list[str] = []
    first = resolve_jars(SMALL, progress=said.append)
    assert resolve_jars(SMALL) == first
    assert [jar.name for jar in first] == ["a.jar"]
    assert (fake_spark.calls, said) == (1, ["fetching a.jar"])


def test_other_packages_are_kept_apart(fake_spark: FakeSpark) -> None:
    assert resolve_jars(SMALL) != resolve_jars(SPARK_PACKAGES)
    assert fake_spark.calls == 2


def test_the_order_of_packages_does_not_matter(fake_spark: FakeSpark) -> None:
    assert resolve_jars(SPARK_PACKAGES) == resolve_jars(SPARK_PACKAGES[::-1])


def test_callers_at_once_share_one_fetch(fake_spark: FakeSpark) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(resolve_jars, [SMALL] * 4))
    assert found[1:] == found[:-1]
    assert fake_spark.calls == 1


@pytest.mark.parametrize("damage", [Path.unlink, lambda jar: jar.write_text("j")])
def test_a_jar_that_was_lost_or_cut_short_is_fetched_again(
    fake_spark: FakeSpark, damage: object
) -> None:
    [jar] = resolve_jars(SMALL)
    damage(jar)  # type: ignore[operator]
    assert resolve_jars(SMALL) == [jar]
    assert jar.read_text() == "jar"


def test_the_cache_is_where_the_user_wants_it(tmp_path: Path) -> None:
    assert jar_cache({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "floe" / "jars"
    assert jar_cache({}) == Path.home() / ".cache" / "floe" / "jars"
    assert jar_cache({"XDG_CACHE_HOME": "relative"}) == jar_cache({})


@pytest.mark.java
@pytest.mark.slow
def test_spark_has_all_its_jars() -> None:
    names = " ".join(jar.name for jar in spark_jars())
    for package in SPARK_PACKAGES:
        assert package.split(":")[1] in names


@pytest.mark.java
@pytest.mark.slow
def test_a_fetch_that_is_killed_is_repaired_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    """The JVM takes its home from the user database; the variable points it at a broken one."""
    home = plant_pom_without_jar(tmp_path / "home")
    options = os.environ.get("JAVA_TOOL_OPTIONS", "")
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"{options} -Duser.home={home}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert [jar.stat().st_size > 200_000 for jar in resolve_jars(SMALL)] == [True]


def plant_pom_without_jar(home: Path) -> Path:
    """Leave a Maven repository like the ones that an interrupted build leaves."""
    group, name, version = SMALL[0].split(":")
    folder = home.joinpath(".m2", "repository", *group.split("."), name, version)
    folder.mkdir(parents=True)
    pom = f"<groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
    model = "<modelVersion>4.0.0</modelVersion>"
    (folder / f"{name}-{version}.pom").write_text(f"<project>{model}{pom}</project>")
    return home
