"""Folding what is stored: dated names become one dataset, versions get their dates."""

from datetime import date

from sqlalchemy import select

from floe.catalog.database import Catalog
from floe.catalog.datasets import find_dataset
from floe.catalog.joins.folding import fold_dates, plan_folds
from floe.catalog.tables import AuditLog, Dataset
from floe.catalog.version_queries import list_versions
from floe.events.openlineage_facets import subset_locations
from floe.spec.dates import DEFAULT_RULES, DateRules
from tests.events.factory import at, event, read, written
from tests.events.test_dates import located
from tests.events.test_recording import record

DAYS = [date(2026, 9, 1), date(2026, 9, 2), date(2026, 9, 3)]
FOLDED = "file//in/fx_{date}.csv"
EVENTS = [
    *(
        event(
            "COMPLETE",
            at(n),
            f"run {n}",
            "load",
            outputs=[
                written(f"/in/fx_{day:%Y%m%d}.csv", namespace="file", columns=["ccy"], rows=n)
            ],
        )
        for n, day in enumerate([*DAYS, DAYS[0]])
    ),
    event(
        "COMPLETE",
        at(9),
        "report",
        "report",
        inputs=[read("/in/fx_20260901.csv", namespace="file", version="v7")],
        outputs=[written("sum", from_columns={"a": ("ref.fx_20260902", "a")})],
    ),
    *(
        event("COMPLETE", at(20 + n), f"spark {n}", outputs=[located("/fx", f"/fx/{day}")])
        for n, day in enumerate(DAYS)
    ),
]


def store_without_rules(catalog: Catalog) -> None:
    """Store events as they were stored before there were rules for dates."""
    plain = [body.replace(b'"subset"', b'"subset_later"') for body in EVENTS]
    record(catalog, plain, [3], DateRules([]))
    with catalog.writing() as session:
        dataset = find_dataset(session, "file//fx")
        for version in list_versions(session, dataset.dataset_id):
            assert version.metadata_json is not None
            version.metadata_json = {"subset": version.metadata_json["subset_later"]}


def shown(catalog: Catalog, name: str) -> list[tuple[str, date | None, str]]:
    with catalog.reading() as session:
        rows = list_versions(session, find_dataset(session, name).dataset_id)
        return sorted((row.version_tag, row.business_date, row.state) for row in rows)


def fold(catalog: Catalog) -> list[str]:
    return [one.dataset for one in fold_dates(catalog, DEFAULT_RULES, subset_locations, "steward")]


def test_a_plan_changes_nothing_and_a_fold_does_what_it_says(catalog: Catalog) -> None:
    store_without_rules(catalog)
    plan = plan_folds(catalog, DEFAULT_RULES, subset_locations)
    assert plan == plan_folds(catalog, DEFAULT_RULES, subset_locations)
    assert sorted(one.dataset for one in plan) == ["file//fx", FOLDED, "lake/ref.fx_{date}"]
    assert sorted(fold(catalog)) == sorted(one.dataset for one in plan)
    assert shown(catalog, FOLDED) == [
        ("2026-09-01.1", DAYS[0], "SUPERSEDED"),
        ("2026-09-01.2", DAYS[0], "READY"),
        ("2026-09-01|v7", DAYS[0], "EXTERNAL"),
        ("2026-09-02.1", DAYS[1], "READY"),
        ("2026-09-03.1", DAYS[2], "READY"),
    ]
    assert [row[1:] for row in shown(catalog, "file//fx")] == [(day, "READY") for day in DAYS]
    with catalog.reading() as session:
        assert sorted(session.scalars(select(Dataset.full_name))) == [
            "file//fx",
            FOLDED,
            "lake/ref.fx_{date}",
            "lake/sum",
        ]
        audited = session.execute(select(AuditLog.actor, AuditLog.action)).all()
        assert {tuple(row) for row in audited} == {("steward", "fold"), ("steward", "dataset.join")}


def test_a_fold_is_repeatable_and_events_go_on_where_it_stopped(catalog: Catalog) -> None:
    store_without_rules(catalog)
    assert fold(catalog)
    before = shown(catalog, FOLDED)
    assert fold(catalog) == []
    record(catalog, [EVENTS[1]], [1])
    assert shown(catalog, FOLDED) == before
    newer = event(
        "COMPLETE", at(50), "newer", outputs=[written("/in/fx_20260902.csv", namespace="file")]
    )
    record(catalog, [newer], [1])
    assert ("2026-09-02.2", DAYS[1], "READY") in shown(catalog, FOLDED)


def test_a_declared_or_curated_dataset_is_not_folded(catalog: Catalog) -> None:
    store_without_rules(catalog)
    with catalog.writing() as session:
        find_dataset(session, "file//in/fx_20260901.csv").curated = True
    fold(catalog)
    with catalog.reading() as session:
        names = sorted(session.scalars(select(Dataset.full_name)))
    assert "file//in/fx_20260901.csv" in names
    assert len(shown(catalog, FOLDED)) == 2


def test_a_fold_that_was_cut_off_goes_on(catalog: Catalog) -> None:
    store_without_rules(catalog)
    planned = {one.dataset for one in plan_folds(catalog, DEFAULT_RULES, subset_locations)}
    folding = fold_dates(catalog, DEFAULT_RULES, subset_locations, "steward")
    first = next(folding).dataset
    folding.close()
    assert set(fold(catalog)) == planned - {first}
