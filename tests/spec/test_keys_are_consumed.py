"""Every key of floe.yaml and platform.yaml has code that acts on it."""

from collections.abc import Callable

import pytest

from floe.settings import ProjectPaths
from floe.spec import validate_project
from floe.spec.base import SpecModel
from floe.spec.pending import PENDING_KEYS
from floe.spec.platform import PlatformSpec
from floe.spec.project import ProjectSpec
from tests.spec.consumers import Key, consumed_keys, keys_of

ROOTS: dict[str, type[SpecModel]] = {"floe.yaml": ProjectSpec, "platform.yaml": PlatformSpec}
EFFECTIVE_ELSEWHERE = {
    "catalog": "load_catalog_database reads it before the rest of floe.yaml is checked",
    "datasets.*.writers": "validation refuses a second writer",
    "governance.classifications": "validation refuses other words",
    "governance.require": "validation refuses datasets without these keys",
}
"""Keys that do their work without an attribute that code outside the spec reads."""
FOR_READERS = "description"
"""Text for people. Most of it is shown in Dagster and the catalog, the rest stays in the file."""


@pytest.fixture(scope="module")
def consumed() -> set[Key]:
    return consumed_keys()


def test_every_key_is_consumed_or_pending(consumed: set[Key]) -> None:
    ignored = [
        f"{file}: {key.path}"
        for file, model in ROOTS.items()
        for key in keys_of(model)
        if key.source not in consumed
        and not key.selects_model
        and key.path not in EFFECTIVE_ELSEWHERE
        and not key.path.endswith(FOR_READERS)
        and not is_pending(key.path, PENDING_KEYS[file])
    ]
    assert ignored == [], "floe accepts these keys and ignores them: wire, remove or list them"


def is_pending(path: str, pending: tuple[str, ...]) -> bool:
    return any(path == key or path.startswith(f"{key}.") for key in pending)


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


def test_using_a_pending_key_is_a_warning_and_no_finding(
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
        "floe.yaml:3: datasets.raw.trades.sla: not enforced yet. floe stores the value and does "
        "not act on it. datasets.*.sla is used 2 times.",
        "platform.yaml:2: api.oidc: not enforced yet. floe stores the value and does "
        "not act on it.",
    ]


def test_a_project_without_pending_keys_has_no_warnings(
    write: Callable[..., ProjectPaths],
) -> None:
    assert validate_project(write("name: risk\n"), {}).warnings == ()
