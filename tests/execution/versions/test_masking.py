"""Policies on reads: who sees which columns, and how."""

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from floe.execution.site import Site
from floe.execution.spark.session import SparkSessions
from floe.execution.versions.masking import Covered, DatasetRestrictedError, cover_columns
from floe.execution.versions.previews import preview_version
from floe.spec import DatasetSpec
from floe.spec.governance import Governance
from tests.execution.maintenance.factory import MONDAY, make_version, new_name, opened, project

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

PEOPLE = {"action": "mask", "classifications": ["confidential"], "roles": ["DATA_STEWARD"]}


def governance(**policies: Any) -> Governance:
    return Governance.model_validate({"policies": policies})


def dataset(classification: str | None = None, **columns: str | None) -> DatasetSpec:
    schema = [
        {"name": name, "type": "string", "classification": kind} for name, kind in columns.items()
    ]
    return DatasetSpec.model_validate({"classification": classification, "schema": schema})


def covered(rules: Governance, spec: DatasetSpec, *columns: str, role: str = "") -> list[Covered]:
    return cover_columns(rules, "crm.people", spec, columns, {role})


def test_a_column_of_the_classification_is_covered_for_all_but_the_roles_named() -> None:
    rules, spec = governance(people=PEOPLE), dataset(email="confidential", id=None)
    assert covered(rules, spec, "id", "email") == [Covered("email", "mask", "people")]
    assert covered(rules, spec, "id", "email", role="DATA_STEWARD") == []
    assert covered(rules, spec, "id", "email", role="PLATFORM_ADMIN") != []


def test_a_column_without_a_classification_inherits_that_of_its_dataset() -> None:
    rules, spec = governance(people=PEOPLE), dataset("confidential", id="public", email=None)
    columns = covered(rules, spec, "id", "EMAIL", "undeclared")
    assert [column.column for column in columns] == ["EMAIL", "undeclared"]


def test_of_several_policies_the_strictest_applies() -> None:
    drop = {"action": "drop", "classifications": ["confidential"]}
    hashed = {"action": "hash", "classifications": ["confidential"]}
    rules = governance(people=PEOPLE, gone=drop, linked=hashed)
    spec = dataset(email="confidential")
    assert covered(rules, spec, "email") == [Covered("email", "drop", "gone")]


def test_a_restricted_dataset_is_refused_with_who_may_read_it() -> None:
    rules = governance(
        staff={"action": "restrict", "classifications": ["restricted"], "roles": ["DATA_OWNER"]}
    )
    spec = dataset(salary="restricted")
    with pytest.raises(DatasetRestrictedError, match=r"policy 'staff'.*Only DATA_OWNER"):
        covered(rules, spec, "salary")
    assert covered(rules, spec, "salary", role="DATA_OWNER") == []


def test_a_dataset_that_nobody_may_read_says_so() -> None:
    rules = governance(sealed={"action": "restrict", "classifications": ["restricted"]})
    with pytest.raises(DatasetRestrictedError, match=r"names no role that may read it\.$"):
        covered(rules, dataset(salary="restricted"), "salary", role="DATA_OWNER")


@pytest.mark.java
@pytest.mark.slow
def test_a_preview_shows_what_the_reader_may_see(
    spark_site: Site, spark: "SparkSession", tmp_path: Path
) -> None:
    name = new_name("people")
    declared = project(
        name,
        schema=[
            {"name": "id", "type": "int"},
            {"name": "birth", "type": "date", "classification": "confidential"},
            {"name": "iban", "type": "string", "classification": "restricted"},
            {"name": "note", "type": "string", "classification": "internal"},
        ],
    )
    declared["governance"] = {
        "policies": {
            "people": PEOPLE,
            "linked": {"action": "hash", "classifications": ["restricted"]},
            "gone": {"action": "drop", "classifications": ["internal"]},
        }
    }
    schema = "id int, birth date, iban string, note string"
    with opened(spark_site, declared, tmp_path) as workspace:
        make_version(
            workspace,
            spark,
            name,
            MONDAY,
            [(1, MONDAY, "DE02", "x"), (2, None, None, "y")],
            schema=schema,
        )
        sparks = SparkSessions(workspace.site)
        masked = preview_version(workspace, sparks, name)
        seen = preview_version(workspace, sparks, name, roles={"DATA_STEWARD"})
    rows = {row["id"]: row for row in map(json.loads, masked.lines)}
    sha = hashlib.sha256(b"DE02").hexdigest()
    assert masked.columns == ("id", "birth", "iban")
    assert rows[1] == {"id": 1, "birth": "***", "iban": sha}
    assert rows[2] == {"id": 2, "birth": None, "iban": None}
    assert {row["birth"] for row in map(json.loads, seen.lines)} == {MONDAY.isoformat(), None}
