"""Every key of floe.yaml and platform.yaml has code that acts on it."""

from collections.abc import Callable

import pytest

from floe.settings import ProjectPaths
from floe.spec import validate_project
from floe.spec.loader import PENDING_KEYS
from floe.spec.project import ProjectSpec
from tests.spec.consumers import (
    EFFECTIVE_ELSEWHERE,
    ROOTS,
    Key,
    consumed_keys,
    ignored_keys,
    keys_of,
)


@pytest.fixture(scope="module")
def consumed() -> set[Key]:
    return consumed_keys()


def test_every_key_is_consumed_or_pending(consumed: set[Key]) -> None:
    ignored = ignored_keys(consumed)
    assert ignored == [], "floe accepts these keys and ignores them: wire, remove or list them"


def test_an_ignored_key_is_detected(consumed: set[Key]) -> None:
    assert ("floe.spec.platform.EmailChannel", "host") in consumed
    assert ("floe.spec.platform.Oidc", "issuer") not in consumed


@pytest.mark.parametrize("file", ROOTS)
def test_pending_keys_exist(file: str) -> None:
    paths = {key.path for key in keys_of(ROOTS[file])}
    assert set(PENDING_KEYS[file]) <= paths


def test_keys_with_effect_elsewhere_exist_and_are_not_consumed(consumed: set[Key]) -> None:
    unconsumed = {key.path for key in keys_of(ProjectSpec) if key.source not in consumed}
    assert set(EFFECTIVE_ELSEWHERE) <= unconsumed


def test_using_a_pending_key_is_a_warning_but_not_a_finding(
    write: Callable[..., ProjectPaths],
) -> None:
    dataset = "{format: csv, location: a.csv, sla: {due: '06:30'}}"
    paths = write(
        f"name: risk\ndatasets:\n  raw.trades: {dataset}\n  raw.prices: {dataset}\n",
        {"platform.yaml": "api:\n  oidc: {issuer: https://login.example.com, audience: floe}\n"},
    )
    validation = validate_project(paths, {})
    assert validation.findings == ()
    assert [str(warning) for warning in validation.warnings] == [
        "floe.yaml:3: datasets.raw.trades.sla: not enforced yet. floe stores the value but does "
        "not act on it. datasets.*.sla is used 2 times.",
        "platform.yaml:2: api.oidc: not enforced yet. floe stores the value but does "
        "not act on it.",
    ]


def test_a_project_without_pending_keys_has_no_warnings(
    write: Callable[..., ProjectPaths],
) -> None:
    assert validate_project(write("name: risk\n"), {}).warnings == ()
