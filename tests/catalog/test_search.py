"""Search: words match in every field, hits in the name come first, typos get suggestions."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event
from sqlalchemy.orm import Session

from floe.catalog import search_index
from floe.catalog.database import Catalog
from floe.catalog.schemas import Column, store_schemas
from floe.catalog.search import (
    CursorError,
    SearchFilters,
    SearchPage,
    search_datasets,
)
from floe.catalog.search_index import (
    index_datasets,
    index_words,
    rank_names,
    split_words,
    suggest_datasets,
)
from floe.catalog.tables import Dataset, DatasetAlias, DatasetTag, Project
from tests.catalog.graph import NOON, dataset


def add(session: Session, name: str, tags: tuple[str, ...] = (), **values: object) -> int:
    """Add a dataset and index it."""
    dataset_id = dataset(session, name, **values)
    session.add_all(DatasetTag(dataset_id=dataset_id, tag=tag) for tag in tags)
    index_datasets(session, [dataset_id])
    return dataset_id


def names(page: SearchPage) -> list[str]:
    return [hit.name for hit in page.hits]


def fill(session: Session) -> None:
    """Add the datasets of a small bank."""
    (schema,) = store_schemas(
        session, [[Column("client_id", "BIGINT"), Column("notional", "DOUBLE")]]
    )
    add(
        session,
        "credit.trades",
        ("regulatory", "daily"),
        description="All open trades of the night, one row per deal.",
        category="credit",
        owner_team="Credit Risk",
        owner_email="credit-risk@example.com",
        default_format="ICEBERG",
        schema_hash=schema,
    )
    add(session, "credit.exposure", ("daily",), category="credit", owner_team="Credit Risk")
    add(session, "bronze.raw_customers", default_format="CSV", owner_team="Customer Data")
    add(session, "silver.customers", description="Clean customers.", owner_team="Customer Data")
    add(session, "marketing.mailing", description="Customers who want mail. Customers only.")


def test_words_are_found_in_names_descriptions_owners_tags_and_columns(catalog: Catalog) -> None:
    with catalog.writing() as session:
        fill(session)
        for text in ("trades", "one row", "risk@example", "regulatory", "notional", "client id"):
            assert "credit.trades" in names(search_datasets(session, text)), text


def test_every_word_must_match_and_the_last_may_be_a_prefix(catalog: Catalog) -> None:
    with catalog.writing() as session:
        fill(session)
        assert names(search_datasets(session, "credit expo")) == ["credit.exposure"]
        assert names(search_datasets(session, "expo credit")) == []
        assert names(search_datasets(session, "credit customers")) == []


def test_hits_in_the_name_come_before_all_others(catalog: Catalog) -> None:
    with catalog.writing() as session:
        fill(session)
        add(session, "ops.letters", ("customers", "customers-list"), owner_team="Customers")
        hits = names(search_datasets(session, "custom"))
    assert set(hits[:2]) == {"bronze.raw_customers", "silver.customers"}
    assert len(hits) == 4


def test_a_name_typed_in_full_is_the_first_hit(catalog: Catalog) -> None:
    with catalog.writing() as session:
        columns = [Column(f"column_{n}", "INT") for n in range(50)]
        (wide,) = store_schemas(session, [columns])
        add(session, "credit.exposure", schema_hash=wide)
        add(session, "credit.exposure_daily")
        assert names(search_datasets(session, "credit.exposure"))[0] == "credit.exposure"


def test_camel_case_and_accents_match_in_every_spelling(catalog: Catalog) -> None:
    with catalog.writing() as session:
        add(session, "crm.CustomerKYCStatus", description="Größe und Façade")
        for text in ("customer kyc", "customerkyc", "KYCStatus", "grosse", "facade", "FAÇADE"):
            assert names(search_datasets(session, text)) == ["crm.CustomerKYCStatus"], text


def test_an_alias_finds_its_dataset(catalog: Catalog) -> None:
    with catalog.writing() as session:
        dataset_id = dataset(session, "market.fx_rates")
        session.add(
            DatasetAlias(
                namespace="s3", name="landing/forex", dataset_id=dataset_id, created_at=NOON
            )
        )
        index_datasets(session, [dataset_id])
        assert names(search_datasets(session, "forex")) == ["market.fx_rates"]


def test_a_changed_dataset_is_found_by_its_new_words_only(catalog: Catalog) -> None:
    with catalog.writing() as session:
        dataset_id = add(session, "market.fx", description="spot")
        session.get_one(Dataset, dataset_id).description = "forward"
        index_datasets(session, [dataset_id])
        assert names(search_datasets(session, "forward")) == ["market.fx"]
        assert names(search_datasets(session, "spot")) == []


def test_a_dataset_is_found_once_it_is_indexed(catalog: Catalog) -> None:
    with catalog.writing() as session:
        dataset_id = dataset(session, "market.fx_rates")
        assert names(search_datasets(session, "market")) == []
        index_datasets(session, [dataset_id])
        assert names(search_datasets(session, "market")) == ["market.fx_rates"]


def test_facets_count_all_hits_not_only_the_page(catalog: Catalog) -> None:
    with catalog.writing() as session:
        fill(session)
        page = search_datasets(session, "credit", limit=1)
    assert len(page.hits) == 1
    assert page.total == 2
    assert {
        name: [(facet.value, facet.count) for facet in page.facets[name]] for name in page.facets
    } == {
        "category": [("credit", 2)],
        "team": [("Credit Risk", 2)],
        "format": [("ICEBERG", 1)],
        "status": [("ACTIVE", 2)],
        "tag": [("daily", 2), ("regulatory", 1)],
    }


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (SearchFilters(category="credit"), ["credit.exposure", "credit.trades"]),
        (SearchFilters(team="Customer Data"), ["bronze.raw_customers", "silver.customers"]),
        (SearchFilters(format="CSV"), ["bronze.raw_customers"]),
        (SearchFilters(tag="daily", format="ICEBERG"), ["credit.trades"]),
        (SearchFilters(status="DEPRECATED"), []),
        (SearchFilters(project="risk"), []),
    ],
)
def test_filters_narrow_down_lists_and_searches_and_their_facets(
    catalog: Catalog, filters: SearchFilters, expected: list[str]
) -> None:
    with catalog.writing() as session:
        fill(session)
        listed = search_datasets(session, filters=filters)
        assert names(listed) == expected
        assert listed.total == len(expected)
        page = search_datasets(session, "c", filters=filters)
        assert sorted(names(page)) == [name for name in expected if "c" in name]


def test_datasets_are_filtered_by_project_name(catalog: Catalog) -> None:
    with catalog.writing() as session:
        project = Project(name="risk", timezone="UTC", content_hash="", created_at=NOON)
        session.add(project)
        session.flush()
        add(session, "credit.exposure", project_id=project.project_id)
        add(session, "market.fx_rates")
        page = search_datasets(session, filters=SearchFilters(project="risk"))
        assert names(page) == ["credit.exposure"]


@pytest.mark.parametrize("text", ["", "daily"])
def test_pages_together_contain_every_hit_once(catalog: Catalog, text: str) -> None:
    with catalog.writing() as session:
        for index in range(7):
            # The same name in two namespaces: a page may end between them.
            space = f"lake{index % 2}"
            name = f"daily.t{index // 2}"
            full_name = f"{space}/{name}"
            add(session, name, namespace=space, full_name=full_name)
        seen: list[str] = []
        cursor = None
        while True:
            page = search_datasets(session, text, limit=2, cursor=cursor)
            seen += [hit.full_name for hit in page.hits]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert len(seen) == 7
        assert len(set(seen)) == 7


@pytest.mark.parametrize("cursor", ["", "no such thing", "bnVsbA", "Wy0xXQ", "WzFd", "ÿ", "A"])
@pytest.mark.parametrize("text", ["", "credit"])
def test_an_invalid_cursor_is_rejected(catalog: Catalog, cursor: str, text: str) -> None:
    if (text, cursor) == ("credit", "WzFd"):
        return  # decodes to [1], a valid cursor of a ranked search
    with catalog.reading() as session, pytest.raises(CursorError, match="next_cursor"):
        search_datasets(session, text, cursor=cursor)


def test_a_search_without_hits_suggests_similar_names(catalog: Catalog) -> None:
    with catalog.writing() as session:
        fill(session)
        assert search_datasets(session, "raw_custmers").suggestions == ["bronze.raw_customers"]
        assert "credit.exposure" in search_datasets(session, "expsoure").suggestions
        assert search_datasets(session, "zzz qqq").suggestions == []
        assert search_datasets(session, "customers").suggestions == []


def test_similar_names_are_ranked_by_similarity() -> None:
    known = ["market.fx_rates", "market.fx_rates_eod", "credit.trades", "market.rates"]
    assert rank_names("market.fx_rate", known)[0] == "market.fx_rates"
    assert rank_names("fxrates", ["credit.trades"]) == []
    assert rank_names("", known) == []


def test_similar_names_are_found_for_short_and_very_long_texts(catalog: Catalog) -> None:
    with catalog.writing() as session:
        fill(session)
        add(session, "fx.spot")
        assert suggest_datasets(session, "spt") == ["fx.spot"]
        assert suggest_datasets(session, "%_\\") == []
        assert suggest_datasets(session, "raw_custmers" + " and more of it" * 200) == []


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ("raw_custmers", "bronze.raw_customers"),
        ("bronze.raw_custmers", "bronze.raw_customers"),
        ("brnze.raw_customers", "bronze.raw_customers"),
        ("lake/bronze.raw_customer", "bronze.raw_customers"),
        ("credit.exposur", "credit.exposure"),
        ("spt", "fx.spot"),
    ],
)
def test_a_large_catalog_suggests_similar_names_by_indexes_only(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, asked: str, wanted: str
) -> None:
    monkeypatch.setattr(search_index, "MAX_SCANNED", 0)
    with catalog.writing() as session:
        fill(session)
        add(session, "fx.spot")
    statements: list[tuple[str, Any]] = []

    def note(_conn: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        statements.append((statement, parameters))

    event.listen(catalog.engine, "before_cursor_execute", note)
    with catalog.reading() as session:
        assert suggest_datasets(session, asked, limit=1) == [wanted]
    event.remove(catalog.engine, "before_cursor_execute", note)
    if catalog.store.name == "sqlite":
        with catalog.engine.connect() as connection:
            for statement, parameters in statements:
                if not statement.startswith("SELECT"):
                    continue
                plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
                for row in plan:
                    step = str(row[-1])
                    assert "SCAN dataset" not in step or "INDEX" in step, (statement, step)


def test_text_without_words_finds_nothing_and_empty_text_lists_all(catalog: Catalog) -> None:
    with catalog.writing() as session:
        fill(session)
        assert search_datasets(session, "%!'\"").hits == []
        assert len(search_datasets(session, "  ").hits) == 5


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    text=st.text(max_size=40) | st.sampled_from(["a AND b", "NEAR(a b)", "a*", '"', "a:b", "-a"])
)
def test_any_text_can_be_searched(catalog: Catalog, text: str) -> None:
    with catalog.reading() as session:
        search_datasets(session, text)


def test_words_are_split_at_punctuation_and_camel_case() -> None:
    assert split_words("s3://Raw-Data/fxRates_EOD.csv") == [
        "s3",
        "raw",
        "data",
        "fx",
        "rates",
        "eod",
        "csv",
    ]
    assert split_words("HTTPServer2Log") == ["http", "server2", "log"]
    assert split_words("") == []
    assert index_words("fxRates eod") == ["fx", "rates", "fxrates", "eod"]
