"""Business dates of foreign versions: from subset facets, paths and names."""

from collections.abc import Sequence
from datetime import date
from itertools import permutations
from typing import Any

import msgspec
import pytest
from openlineage.client.event_v2 import OutputDataset
from openlineage.client.facet_v2 import base_subset_dataset as subset

from floe.catalog.database import Catalog
from floe.catalog.datasets import add_alias, find_dataset, new_dataset
from floe.catalog.version_queries import list_versions
from floe.spec.dates import DateRules
from tests.events.factory import at, event, read, written
from tests.events.test_recording import record

DAYS = [date(2026, 9, 1), date(2026, 9, 2), date(2026, 9, 3)]


def located(name: str, *paths: str, **fields: Any) -> OutputDataset:
    """An output whose subset facet lists locations, as sent by the Spark listener."""
    output = written(name, namespace="file", **fields)
    condition = subset.LocationSubsetCondition(locations=list(paths))
    facet = subset.OutputSubsetOutputDatasetFacet(outputCondition=condition)
    return OutputDataset(
        output.namespace,
        output.name,
        facets=output.facets,
        outputFacets={**(output.outputFacets or {}), "subset": facet},
    )


def versions(catalog: Catalog, name: str) -> list[tuple[str, date | None, str]]:
    with catalog.reading() as session:
        rows = list_versions(session, find_dataset(session, name).dataset_id)
        return sorted((row.version_tag, row.business_date, row.state) for row in rows)


def names(catalog: Catalog) -> list[str]:
    from sqlalchemy import select

    from floe.catalog.tables import Dataset

    with catalog.reading() as session:
        return sorted(session.scalars(select(Dataset.full_name)))


WRITES = [
    event("COMPLETE", at(n), f"run {n}", outputs=[located("/fx", f"/fx/{day}", rows=n)])
    for n, day in enumerate(DAYS)
]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_dated_folders_become_versions_of_one_dataset(
    catalog: Catalog, order: Sequence[int]
) -> None:
    record(catalog, [WRITES[index] for index in order], [2])
    wanted = [(f"{day}.1", day, "READY") for day in DAYS]
    assert versions(catalog, "file//fx") == wanted


def test_a_rerun_supersedes_only_its_own_date(catalog: Catalog) -> None:
    again = event("COMPLETE", at(9), "again", outputs=[located("/fx", "/fx/2026-09-02")])
    record(catalog, [*WRITES, again, again], [1])
    assert versions(catalog, "file//fx") == [
        ("2026-09-01.1", DAYS[0], "READY"),
        ("2026-09-02.1", DAYS[1], "SUPERSEDED"),
        ("2026-09-02.2", DAYS[1], "READY"),
        ("2026-09-03.1", DAYS[2], "READY"),
    ]


def test_a_run_that_writes_several_dates_creates_a_version_for_each(catalog: Catalog) -> None:
    output = located("/fx", *(f"/fx/{day}" for day in DAYS), "/fx/2026-09-01/b", rows=30)
    backfill = event(
        "COMPLETE", at(0), outputs=[output], facets={"floe": {"businessDate": "2026-10-01"}}
    )
    record(catalog, [backfill, backfill], [1])
    assert versions(catalog, "file//fx") == [(f"{day}.1", day, "READY") for day in DAYS]
    with catalog.reading() as session:
        rows = list_versions(session, find_dataset(session, "file//fx").dataset_id)
        # The row count is the total of all dates.
        assert {row.row_count for row in rows} == {None}
        assert {row.path for row in rows} == {f"/fx/{day}" for day in DAYS}


def test_partitions_of_a_date_do_not_supersede_each_other(catalog: Catalog) -> None:
    outputs = [
        [located("/fx", "/fx/2026-09-01/region=EU")],
        [located("/fx", "/fx/2026-09-01/region=US")],
        [located("/fx", "/fx/2026-09-02/region=EU", "/fx/2026-09-02/region=US")],
        [located("/fx", "/fx/2026-09-01/region=EU")],
    ]
    events = [event("COMPLETE", at(n), f"run {n}", outputs=out) for n, out in enumerate(outputs)]
    record(catalog, events, [1])
    assert versions(catalog, "file//fx") == [
        ("2026-09-01|region=EU.1", DAYS[0], "SUPERSEDED"),
        ("2026-09-01|region=EU.2", DAYS[0], "READY"),
        ("2026-09-01|region=US.1", DAYS[0], "READY"),
        ("2026-09-02|region=EU.1", DAYS[1], "READY"),
        ("2026-09-02|region=US.1", DAYS[1], "READY"),
    ]


@pytest.mark.parametrize(
    "condition",
    [
        {"type": "partition", "partitions": [{"dimensions": {"cob": "2026-09-01"}}]},
        {"type": "partition", "partitions": [{"dimensions": {"day": 1, "month": 9, "year": 2026}}]},
        {
            "type": "compare",
            "comparison": "EQUAL",
            "left": {"type": "field", "field": "cob"},
            "right": {"type": "literal", "value": "2026-09-01"},
        },
    ],
)
def test_other_kinds_of_subset_contain_dates_too(
    catalog: Catalog, condition: dict[str, Any]
) -> None:
    body = msgspec.json.decode(event("COMPLETE", at(9 * 24 * 60), outputs=[written("t")]))
    body["outputs"][0]["outputFacets"] = {"subset": {"outputCondition": condition}}
    record(catalog, [msgspec.json.encode(body)], [1])
    assert versions(catalog, "lake/t") == [("2026-09-01.1", DAYS[0], "READY")]


@pytest.mark.parametrize("folder", ["x" * 2000, f"region={'x' * 2000}"])
@pytest.mark.parametrize("location", [None, "{partition}/{business_date}"])
def test_a_location_that_is_too_long_to_store_still_names_its_date(
    catalog: Catalog, folder: str, location: str | None
) -> None:
    with catalog.writing() as session:
        dataset = new_dataset("file", "t", status="ACTIVE", actor="t")
        dataset.declaration_json = {"location": location} if location else None
        session.add(dataset)
    path = f"/lake/{folder}/2026-09-01"
    record(catalog, [event("COMPLETE", at(9 * 24 * 60), outputs=[located("t", path)])], [1])
    with catalog.reading() as session:
        [row] = list_versions(session, find_dataset(session, "file/t").dataset_id)
        assert (row.business_date, row.state, row.path) == (DAYS[0], "READY", None)


@pytest.mark.parametrize(
    "condition", [None, 5, [], {"type": "location", "locations": [None, 5]}, {"type": "binary"}]
)
def test_an_invalid_subset_is_ignored(catalog: Catalog, condition: Any) -> None:
    body = msgspec.json.decode(event("COMPLETE", at(0), outputs=[written("t")]))
    body["outputs"][0]["outputFacets"] = {"subset": {"outputCondition": condition}}
    record(catalog, [msgspec.json.encode(body)], [1])
    assert versions(catalog, "lake/t") == [("2026-09-01.1", DAYS[0], "READY")]


def dated(day: str, **fields: Any) -> OutputDataset:
    return written(f"/in/exposure_{day}.csv", namespace="file", **fields)


FOLDED = "file//in/exposure_{date}.csv"


def test_names_that_differ_by_their_date_are_one_dataset(catalog: Catalog) -> None:
    events = [
        event("COMPLETE", at(0), "a", outputs=[dated("20260901", version="1")]),
        event("COMPLETE", at(1), "b", outputs=[dated("20260902", version="1")]),
        event("COMPLETE", at(2), "c", outputs=[dated("20260903")]),
        event(
            "COMPLETE",
            at(3),
            "d",
            "report",
            inputs=[read("/in/exposure_20260901.csv", namespace="file", version="1")],
            outputs=[written("sum", from_columns={"a": ("/in/exposure_20260901.csv", "a")})],
        ),
    ]
    record(catalog, events, [2])
    assert [name for name in names(catalog) if name.startswith("file/")] == [FOLDED]
    assert versions(catalog, FOLDED) == [
        ("2026-09-01|1", DAYS[0], "READY"),
        ("2026-09-02|1", DAYS[1], "READY"),
        ("2026-09-03.1", DAYS[2], "READY"),
    ]
    assert "lake//in/exposure_{date}.csv" in names(catalog)


def test_a_declared_or_curated_name_keeps_its_date(catalog: Catalog) -> None:
    with catalog.writing() as session:
        session.add(new_dataset("file", "/in/exposure_20260901.csv", status="ACTIVE", actor="t"))
        session.flush()
        find_dataset(session, "file//in/exposure_20260901.csv").curated = True
    record(catalog, [event("COMPLETE", at(24 * 60), outputs=[dated("20260901")])], [1])
    assert names(catalog) == ["file//in/exposure_20260901.csv"]
    # Its date is that of the event, because the name is not parsed.
    result = versions(catalog, "file//in/exposure_20260901.csv")
    assert result == [("2026-09-02.1", DAYS[1], "READY")]


def test_an_alias_may_contain_the_date_placeholder(catalog: Catalog) -> None:
    with catalog.writing() as session:
        dataset = new_dataset("lake", "landing.exposure", status="ACTIVE", actor="t")
        session.add(dataset)
        session.flush()
        add_alias(session, dataset.dataset_id, "file", "/in/exposure_{date}.csv")
    record(catalog, [event("COMPLETE", at(0), outputs=[dated("20260902")])], [1])
    assert names(catalog) == ["lake/landing.exposure"]
    assert versions(catalog, "landing.exposure") == [("2026-09-02.1", DAYS[1], "READY")]


def test_a_declared_location_decides_which_date_of_a_path_counts(catalog: Catalog) -> None:
    with catalog.writing() as session:
        dataset = new_dataset("lake", "landing.fx", status="ACTIVE", actor="t")
        dataset.declaration_json = {"location": "landing/{business_date}/fx_2026-01-01.csv"}
        session.add(dataset)
    output = written("landing.fx")
    body = msgspec.json.decode(event("COMPLETE", at(9 * 24 * 60), outputs=[output]))
    body["outputs"][0]["facets"]["path"] = "/data/landing/2026-09-01/fx_2026-01-01.csv"
    record(catalog, [msgspec.json.encode(body)], [1])
    assert versions(catalog, "landing.fx") == [("2026-09-01.1", DAYS[0], "READY")]


@pytest.mark.parametrize(
    ("day", "fields", "facets"),
    [
        ("2026-09-05", {"version": "2026-09-06"}, {"floe": {"businessDate": "2026-09-05"}}),
        ("2026-09-06", {"version": "2026-09-06"}, {}),
        ("2026-09-03", {}, {}),
    ],
)
def test_an_explicit_business_date_wins_over_a_path(
    catalog: Catalog, day: str, fields: dict[str, Any], facets: dict[str, Any]
) -> None:
    output = located("/fx/2026-09-04", "/fx/2026-09-04/cob=2026-09-03", **fields)
    record(catalog, [event("COMPLETE", at(0), outputs=[output], facets=facets)], [1])
    ((_, business_date, _),) = versions(catalog, "file//fx/{date}")
    assert str(business_date) == day


def test_without_date_rules_names_are_unchanged(catalog: Catalog) -> None:
    record(catalog, [event("COMPLETE", at(0), outputs=[dated("20260903")])], [1], DateRules([]))
    assert names(catalog) == ["file//in/exposure_20260903.csv"]
    result = versions(catalog, "file//in/exposure_20260903.csv")
    assert result == [("2026-09-01.1", DAYS[0], "READY")]


def test_the_date_is_removed_from_a_name_with_a_symlink_too(catalog: Catalog) -> None:
    events = [
        event(
            "COMPLETE", at(n), f"run {n}", outputs=[dated(day, symlink=("hive", "risk.exposure"))]
        )
        for n, day in enumerate(["20260901", "20260902"])
    ]
    record(catalog, events, [1])
    assert len(names(catalog)) == 1
    assert versions(catalog, FOLDED) == [
        ("2026-09-01.1", DAYS[0], "READY"),
        ("2026-09-02.1", DAYS[1], "READY"),
    ]
