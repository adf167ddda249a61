"""Registering a project makes the catalog agree with it, and touches nothing else."""

from typing import Any

import pytest
from sqlalchemy import event, func, select

from floe.catalog.audit import list_audit
from floe.catalog.changes import list_changes
from floe.catalog.checks import list_checks
from floe.catalog.database import Catalog
from floe.catalog.datasets import (
    ACTIVE,
    DEPRECATED,
    DRAFT,
    add_alias,
    create_dataset,
    find_dataset,
    list_tags,
    page_dataset_events,
)
from floe.catalog.edges import list_consumers, list_producers
from floe.catalog.errors import OwnedElsewhereError, WriterConflictError
from floe.catalog.processes import describe_process, find_process, get_contract
from floe.catalog.projects import register_project
from floe.catalog.schemas import list_columns
from floe.catalog.slas import describe_sla
from floe.catalog.tables import Dataset, DatasetAlias, Sla
from floe.spec import ProjectSpec

RISK: dict[str, Any] = {
    "name": "credit-risk",
    "timezone": "Europe/London",
    "datasets": {
        "market.fx_rates": {
            "format": "csv",
            "location": "landing/fx/{business_date}/*.csv",
            "manifest": {"kind": "json", "checksum": "sha256"},
            "category": "market",
            "tags": ["feed", "daily"],
            "owner": {"team": "Market Data", "email": "market-data@example.com"},
            "sla": {"due": "06:30", "calendar": "TARGET", "day_offset": 1},
        },
        "credit.exposure": {
            "schema": [{"name": "exposure", "type": "decimal(18,2)", "nullable": False}],
            "checks": [{"name": "no_negative", "sql": "select 1", "expect": "= 0"}],
        },
    },
    "processes": {
        "credit.exposure_daily": {
            "inputs": {"fx": "market.fx_rates"},
            "outputs": {"exposure": "credit.exposure"},
            "sql": "select 1",
            "trigger": "dataset",
            "sla": {"max_duration": "20m"},
        }
    },
}


def declare(**changes: Any) -> ProjectSpec:
    return ProjectSpec.model_validate({**RISK, **changes})


def register(catalog: Catalog, spec: ProjectSpec) -> list[str]:
    with catalog.writing() as session:
        report = register_project(session, spec, lake="lake", actor="ann")
        return [str(line) for line in report.lines]


def test_floe_writes_what_a_declared_process_writes(catalog: Catalog) -> None:
    def written() -> dict[str, bool]:
        with catalog.reading() as session:
            return {row.name: row.floe_writes for row in session.scalars(select(Dataset))}

    register(catalog, declare())
    assert written() == {"market.fx_rates": False, "credit.exposure": True}
    register(catalog, declare(processes={}))
    assert written() == {"market.fx_rates": False, "credit.exposure": False}


def test_datasets_and_processes_without_an_owner_get_the_default_owner(catalog: Catalog) -> None:
    owner = {"team": "Credit Risk", "email": "credit-risk@example.com"}
    register(catalog, declare(governance={"default_owner": owner}))
    with catalog.reading() as session:
        assert find_dataset(session, "credit.exposure").owner_team == "Credit Risk"
        assert find_dataset(session, "market.fx_rates").owner_team == "Market Data"
        process = find_process(session, "floe/credit-risk/credit.exposure_daily")
        assert (process.team, process.owner_email) == ("Credit Risk", "credit-risk@example.com")


def test_the_name_of_a_declared_dataset_is_no_alias_of_another(catalog: Catalog) -> None:
    with catalog.writing() as session:
        other = create_dataset(session, "elsewhere", "squatter")
        add_alias(session, other.dataset_id, "lake", "credit.exposure")
    register(catalog, declare())
    with catalog.reading() as session:
        assert find_dataset(session, "lake/credit.exposure").project_id is not None
        assert session.get(DatasetAlias, ("lake", "credit.exposure")) is None


def test_the_sql_of_a_process_is_stored_with_its_outputs_and_follows_changes(
    catalog: Catalog,
) -> None:
    def register_sql(sql: str) -> str | None:
        with catalog.writing() as session:
            texts = {"credit.exposure_daily": sql}
            register_project(session, declare(), lake="lake", sql=texts)
        with catalog.reading() as session:
            process = find_process(session, "floe/credit-risk/credit.exposure_daily")
            return describe_process(session, process.process_id).sql

    assert register_sql("select 1 as exposure") == "select 1 as exposure"
    assert register_sql("select 2 as exposure") == "select 2 as exposure"


def test_a_new_project_is_registered_with_all_that_it_declares(catalog: Catalog) -> None:
    assert register(catalog, declare()) == [
        "created dataset market.fx_rates",
        "created dataset credit.exposure",
        "created process credit.exposure_daily",
        "added 2 edges",
    ]
    with catalog.reading() as session:
        rates = find_dataset(session, "market.fx_rates")
        assert (rates.full_name, rates.default_format) == ("lake/market.fx_rates", "CSV")
        assert (rates.owner_team, rates.category) == ("Market Data", "market")
        assert (rates.status, rates.needs_validation) == (ACTIVE, True)
        assert list_tags(session, rates.dataset_id) == ["daily", "feed"]
        assert describe_sla(session, rates.default_sla_id) == (
            "by 06:30 Europe/London, 1 day later, on TARGET days"
        )
        exposure = find_dataset(session, "credit.exposure")
        assert [column.name for column in list_columns(session, exposure.schema_hash)] == [
            "exposure"
        ]
        assert [check.name for check in list_checks(session, exposure.dataset_id)] == [
            "no_negative"
        ]
        process = find_process(session, "floe/credit-risk/credit.exposure_daily")
        assert (process.technology, process.trigger_mode) == ("SPARK_SQL", "DATASET")
        assert describe_sla(session, process.sla_id) == "within 20m"
        contract = get_contract(session, process.process_id)
        assert contract.inputs == ("lake/market.fx_rates",)
        assert contract.outputs == ("lake/credit.exposure",)


def test_registering_again_changes_nothing(catalog: Catalog) -> None:
    register(catalog, declare())
    with catalog.reading() as session:
        events = session.scalar(select(func.count()).select_from(Dataset))
        log = len(list_changes(session, 0))
    assert register(catalog, declare()) == []
    with catalog.reading() as session:
        assert session.scalar(select(func.count()).select_from(Dataset)) == events
        assert len(list_changes(session, 0)) == log


def test_a_change_is_told_by_its_fields(catalog: Catalog) -> None:
    register(catalog, declare())
    rates = {**RISK["datasets"]["market.fx_rates"], "category": "rates", "tags": ["feed"]}
    rates["sla"] = {"due": "07:00"}
    datasets = {**RISK["datasets"], "market.fx_rates": rates}
    (line,) = register(catalog, declare(datasets=datasets))
    assert line == (
        "market.fx_rates: category market → rates; due 06:30 next day → 07:00 same day; "
        "sla.calendar TARGET → none; tags feed, daily → feed"
    )
    with catalog.reading() as session:
        rates_row = find_dataset(session, "market.fx_rates")
        assert list_tags(session, rates_row.dataset_id) == ["feed"]
        assert page_dataset_events(session, rates_row.dataset_id)[0].event_type == "UPDATED"
        promise = session.get_one(Sla, rates_row.default_sla_id)
        assert (promise.due, promise.calendar) == ("07:00", None)


def test_what_vanished_is_deprecated_and_comes_back_as_it_was(catalog: Catalog) -> None:
    register(catalog, declare())
    gone = register(catalog, declare(datasets={}, processes={}))
    assert sorted(gone) == [
        "deprecated dataset credit.exposure",
        "deprecated dataset market.fx_rates",
        "deprecated process credit.exposure_daily",
        "ended 2 edges",
    ]
    with catalog.reading() as session:
        rates = find_dataset(session, "market.fx_rates")
        assert rates.status == DEPRECATED
        assert list_consumers(session, rates.dataset_id) == []
    register(catalog, declare())
    with catalog.reading() as session:
        again = find_dataset(session, "market.fx_rates")
        assert (again.dataset_id, again.status) == (rates.dataset_id, ACTIVE)
        assert len(list_consumers(session, rates.dataset_id)) == 1


def test_a_check_that_vanished_is_no_longer_in_force(catalog: Catalog) -> None:
    register(catalog, declare())
    exposure = {**RISK["datasets"]["credit.exposure"], "checks": []}
    datasets = {**RISK["datasets"], "credit.exposure": exposure}
    (line,) = register(catalog, declare(datasets=datasets))
    assert line == "credit.exposure: check no_negative removed"
    with catalog.reading() as session:
        dataset = find_dataset(session, "credit.exposure")
        assert list_checks(session, dataset.dataset_id) == []


def test_renamed_datasets_and_processes_keep_their_numbers(catalog: Catalog) -> None:
    register(catalog, declare())
    with catalog.reading() as session:
        before = find_dataset(session, "credit.exposure").dataset_id
        process = find_process(session, "credit.exposure_daily").process_id
    spec = declare(
        datasets={
            "market.fx_rates": RISK["datasets"]["market.fx_rates"],
            "credit.ead": {
                **RISK["datasets"]["credit.exposure"],
                "renamed_from": "credit.exposure",
            },
        },
        processes={
            "credit.ead_daily": {
                **RISK["processes"]["credit.exposure_daily"],
                "outputs": {"ead": "credit.ead"},
                "renamed_from": "credit.exposure_daily",
            }
        },
    )
    register(catalog, spec)
    with catalog.reading() as session:
        renamed = find_dataset(session, "credit.ead")
        assert (renamed.dataset_id, renamed.status) == (before, ACTIVE)
        assert find_dataset(session, "credit.exposure").dataset_id == before
        assert find_process(session, "credit.ead_daily").process_id == process
        writers = list_producers(session, before)
        assert [one.process_key for one in writers] == ["floe/credit-risk/credit.ead_daily"]
    assert register(catalog, spec) == []


def test_another_projects_dataset_cannot_be_declared(catalog: Catalog) -> None:
    register(catalog, declare())
    with pytest.raises(OwnedElsewhereError, match="belongs to project 'credit-risk'"):
        register(catalog, declare(name="market-risk", processes={}))


def test_a_failed_registration_leaves_nothing_behind(catalog: Catalog) -> None:
    register(catalog, declare())
    with pytest.raises(OwnedElsewhereError):
        register(
            catalog,
            declare(name="other", datasets={"a.new": {}, **RISK["datasets"]}, processes={}),
        )
    with catalog.reading() as session:
        assert session.scalar(select(Dataset).where(Dataset.name == "a.new")) is None


def test_a_dataset_seen_before_it_was_declared_is_adopted(catalog: Catalog) -> None:
    with catalog.writing() as session:
        seen = create_dataset(session, "lake", "credit.exposure", status=DRAFT).dataset_id
    register(catalog, declare())
    with catalog.reading() as session:
        adopted = find_dataset(session, "credit.exposure")
        assert (adopted.dataset_id, adopted.status) == (seen, ACTIVE)
        assert adopted.project_id is not None


def test_a_second_declared_writer_of_another_project_is_refused(catalog: Catalog) -> None:
    register(catalog, declare())
    writer = {"outputs": {"x": "credit.exposure"}, "sql": "select 1"}
    spec = declare(name="other", datasets={}, processes={"other.writer": writer})
    with pytest.raises(WriterConflictError, match="'writers: many'"):
        register(catalog, spec)


def test_an_undeclared_dataset_is_added_as_a_draft(catalog: Catalog) -> None:
    reader = {"inputs": {"x": "hr.staff"}, "outputs": {"y": "hr.count"}, "sql": "select 1"}
    lines = register(catalog, declare(datasets={"hr.count": {}}, processes={"hr.counting": reader}))
    assert "noted dataset hr.staff (not declared yet; added as DRAFT)" in lines
    with catalog.reading() as session:
        assert find_dataset(session, "hr.staff").status == DRAFT


def test_each_thing_that_a_registration_changes_is_in_the_audit_log(catalog: Catalog) -> None:
    register(catalog, declare())
    assert [(action, key) for action, key, _, _ in audit_entries(catalog)] == [
        ("project.create", "credit-risk"),
        ("dataset.create", "lake/market.fx_rates"),
        ("dataset.create", "lake/credit.exposure"),
        ("process.create", "floe/credit-risk/credit.exposure_daily"),
    ]
    _, (_, _, before, after), *_ = audit_entries(catalog)
    assert before is None
    assert (after["owner_team"], after["tags"]) == ("Market Data", ["daily", "feed"])
    with catalog.reading() as session:
        assert {entry.actor for entry in list_audit(session)} == {"ann"}
    register(catalog, declare())
    assert len(audit_entries(catalog)) == 4


def test_the_audit_log_has_what_a_declaration_was_before(catalog: Catalog) -> None:
    register(catalog, declare())
    known = len(audit_entries(catalog))
    rates = {**RISK["datasets"]["market.fx_rates"], "category": "rates", "tags": ["feed"]}
    exposure = {**RISK["datasets"]["credit.exposure"], "checks": []}
    register(catalog, declare(datasets={"market.fx_rates": rates, "credit.exposure": exposure}))
    project, changed, unchecked = audit_entries(catalog)[known:]
    assert project[:2] == ("project.update", "credit-risk")
    action, key, before, after = changed
    assert (action, key) == ("dataset.update", "lake/market.fx_rates")
    assert (before["category"], after["category"]) == ("market", "rates")
    assert (before["tags"], after["tags"]) == (["daily", "feed"], ["feed"])
    assert before.keys() == after.keys() == {"category", "tags", "declaration_json"}
    _, _, before, after = unchecked
    assert (before["checks"], after["checks"]) == (
        {"no_negative": {"active": True}},
        {"no_negative": {"active": False}},
    )


def test_the_audit_log_tells_what_was_renamed_and_what_was_given_up(catalog: Catalog) -> None:
    register(catalog, declare())
    known = len(audit_entries(catalog))
    ead = {**RISK["datasets"]["credit.exposure"], "renamed_from": "credit.exposure"}
    daily = {
        **RISK["processes"]["credit.exposure_daily"],
        "inputs": {},
        "outputs": {"ead": "credit.ead"},
        "renamed_from": "credit.exposure_daily",
    }
    register(catalog, declare(datasets={"credit.ead": ead}, processes={"credit.ead_daily": daily}))
    _, dataset, gone, process = audit_entries(catalog)[known:]
    assert dataset[:2] == ("dataset.rename", "lake/credit.ead")
    assert (dataset[2]["name"], dataset[3]["name"]) == ("credit.exposure", "credit.ead")
    assert gone == (
        "dataset.deprecate",
        "lake/market.fx_rates",
        {"status": ACTIVE},
        {"status": DEPRECATED},
    )
    assert process[:2] == ("process.rename", "floe/credit-risk/credit.ead_daily")
    assert process[2]["process_key"] == "floe/credit-risk/credit.exposure_daily"


def test_a_promise_that_changes_with_its_project_is_in_the_audit_log(catalog: Catalog) -> None:
    register(catalog, declare())
    register(catalog, declare(timezone="Europe/Paris"))
    changed = [entry[1:] for entry in audit_entries(catalog) if entry[0] == "sla.update"]
    assert changed[0] == (
        "dataset:lake/market.fx_rates",
        {"zone": "Europe/London"},
        {"zone": "Europe/Paris"},
    )


def test_many_datasets_are_audited_in_one_statement(catalog: Catalog) -> None:
    written: list[bool] = []

    def note(_c: Any, _k: Any, statement: str, _p: Any, _x: Any, many: bool) -> None:
        if statement.startswith("INSERT INTO audit_log"):
            written.append(many)

    event.listen(catalog.engine, "before_cursor_execute", note)
    datasets: dict[str, Any] = {f"d.{n}": {} for n in range(50)}
    register(catalog, declare(datasets=datasets, processes={}))
    assert written == [True]
    assert len(audit_entries(catalog)) == 51


def audit_entries(catalog: Catalog) -> list[tuple[str, str, Any, Any]]:
    """What the audit log holds, the oldest first."""
    with catalog.reading() as session:
        return [
            (entry.action, entry.object_key, entry.before_json, entry.after_json)
            for entry in reversed(list_audit(session))
        ]
