"""Datasets: registering, updating, renaming, deprecating and finding them."""

import pytest

from floe.catalog.database import Catalog
from floe.catalog.datasets import (
    ACTIVE,
    DEPRECATED,
    DatasetFields,
    add_alias,
    create_dataset,
    find_dataset,
    list_tags,
    page_dataset_events,
    page_datasets,
    rename_dataset,
    replace_tags,
    set_status,
    update_dataset,
)
from floe.catalog.errors import AmbiguousDatasetError, DatasetExistsError, DatasetNotFoundError


def test_a_registered_dataset_is_found_by_name_full_name_and_id(catalog: Catalog) -> None:
    with catalog.writing() as session:
        trades = create_dataset(session, "lake", "market.trades", owner_team="Markets")
        dataset_id = trades.dataset_id
    with catalog.reading() as session:
        for name in ("market.trades", "lake/market.trades", str(dataset_id)):
            assert find_dataset(session, name).dataset_id == dataset_id


def test_an_unknown_dataset_is_rejected_with_the_nearest_name(catalog: Catalog) -> None:
    with catalog.writing() as session:
        create_dataset(session, "lake", "market.trades")
    with (
        catalog.reading() as session,
        pytest.raises(DatasetNotFoundError, match=r"Did you mean 'market\.trades'\?"),
    ):
        find_dataset(session, "market.trade")


def test_an_id_too_large_for_the_database_is_not_found(catalog: Catalog) -> None:
    with catalog.reading() as session, pytest.raises(DatasetNotFoundError):
        find_dataset(session, "9" * 30)


def test_a_name_in_two_namespaces_requires_the_full_name(catalog: Catalog) -> None:
    with catalog.writing() as session:
        create_dataset(session, "lake", "trades")
        create_dataset(session, "db2", "trades")
    with (
        catalog.reading() as session,
        pytest.raises(AmbiguousDatasetError, match="'db2/trades', 'lake/trades'"),
    ):
        find_dataset(session, "trades")


def test_the_same_name_cannot_be_registered_twice(catalog: Catalog) -> None:
    with catalog.writing() as session:
        create_dataset(session, "lake", "trades")
    with pytest.raises(DatasetExistsError), catalog.writing() as session:
        create_dataset(session, "lake", "trades")


def test_an_update_returns_what_changed_and_records_an_event(catalog: Catalog) -> None:
    with catalog.writing() as session:
        trades = create_dataset(session, "lake", "trades", category="market", actor="ann")
        values: DatasetFields = {"category": "market", "owner_team": "Markets"}
        change = update_dataset(session, trades, actor="bob", **values)
        assert (change.before, change.after) == ({"owner_team": None}, {"owner_team": "Markets"})
        assert not update_dataset(session, trades, actor="bob", **values)
    with catalog.reading() as session:
        events = page_dataset_events(session, find_dataset(session, "trades").dataset_id)
        assert [(event.event_type, event.actor) for event in events] == [
            ("UPDATED", "bob"),
            ("REGISTERED", "ann"),
        ]


def test_a_renamed_dataset_keeps_its_id_and_is_found_by_its_old_name(catalog: Catalog) -> None:
    with catalog.writing() as session:
        trades = create_dataset(session, "lake", "trades")
        rename_dataset(session, trades, "market.trades")
    with catalog.reading() as session:
        renamed = find_dataset(session, "trades")
        assert renamed.full_name == "lake/market.trades"
        assert find_dataset(session, "lake/trades").dataset_id == renamed.dataset_id


def test_a_dataset_can_be_renamed_back(catalog: Catalog) -> None:
    with catalog.writing() as session:
        trades = create_dataset(session, "lake", "trades")
        rename_dataset(session, trades, "market.trades")
        rename_dataset(session, trades, "trades")
        assert find_dataset(session, "trades").name == "trades"
        assert find_dataset(session, "market.trades").name == "trades"


def test_an_alias_leads_to_the_dataset(catalog: Catalog) -> None:
    with catalog.writing() as session:
        trades = create_dataset(session, "lake", "trades")
        add_alias(session, trades.dataset_id, "file", "/data/trades")
    with catalog.reading() as session:
        assert find_dataset(session, "/data/trades").name == "trades"


def test_deprecating_twice_changes_nothing_the_second_time(catalog: Catalog) -> None:
    with catalog.writing() as session:
        trades = create_dataset(session, "lake", "trades")
        assert set_status(session, trades, DEPRECATED, actor="ann")
        assert not set_status(session, trades, DEPRECATED, actor="ann")
        assert [event.event_type for event in page_dataset_events(session, trades.dataset_id)] == [
            "DEPRECATED",
            "REGISTERED",
        ]


def test_pages_continue_after_the_last_dataset_and_filter_by_status(catalog: Catalog) -> None:
    with catalog.writing() as session:
        for name in ("a", "b", "c"):
            create_dataset(session, "lake", name)
        set_status(session, find_dataset(session, "b"), DEPRECATED)
    with catalog.reading() as session:
        first = page_datasets(session, 2)
        assert [hit.name for hit in first] == ["a", "b"]
        after = (first[-1].name, first[-1].dataset_id)
        assert [hit.name for hit in page_datasets(session, 2, after=after)] == ["c"]
        assert [hit.name for hit in page_datasets(session, 9, status=ACTIVE)] == ["a", "c"]


def test_tags_are_replaced_as_a_whole(catalog: Catalog) -> None:
    with catalog.writing() as session:
        trades = create_dataset(session, "lake", "trades")
        assert replace_tags(session, trades.dataset_id, ["pii", "daily"])
        assert replace_tags(session, trades.dataset_id, ["daily", "gold"])
        assert not replace_tags(session, trades.dataset_id, ["gold", "daily"])
        assert list_tags(session, trades.dataset_id) == ["daily", "gold"]
