"""What the catalog makes of an old job's reports."""

import json
from pathlib import Path
from typing import Any

from floe import clock
from floe.catalog import find_dataset, list_versions
from floe.catalog.database import Catalog
from floe.catalog.recording import Recorder, record_group
from floe.client import dataset_message, process_message
from floe.events.ingest import read_claim


def report(catalog: Catalog, *messages: dict[str, Any]) -> None:
    """Record each message by itself, as it would come."""
    recorder = Recorder(catalog.store)
    for message in messages:
        claim = read_claim(json.dumps(message).encode())
        assert record_group(catalog, recorder, [claim], clock.now()) == {}
    recorder.close()


def versions(catalog: Catalog, name: str) -> list[tuple[str, str, str]]:
    with catalog.reading() as session:
        dataset = find_dataset(session, name)
        found = list_versions(session, dataset.dataset_id)
        return sorted((one.version_tag, one.state, str(one.business_date)) for one in found)


def test_a_version_registered_twice_is_one_version(catalog: Catalog) -> None:
    report(
        catalog,
        dataset_message("credit.positions", "v7", business_date="2026-09-01"),
        dataset_message("credit.positions", "v7", business_date="2026-09-01", rows=3),
    )
    assert versions(catalog, "credit.positions") == [("v7", "READY", "2026-09-01")]


def test_a_version_that_failed_first_is_ready_once_it_is_registered_so(catalog: Catalog) -> None:
    report(catalog, dataset_message("credit.positions", "v7", "FAILED", error="no feed"))
    assert versions(catalog, "credit.positions") == []
    report(catalog, dataset_message("credit.positions", "v7", business_date="2026-09-01"))
    assert versions(catalog, "credit.positions") == [("v7", "READY", "2026-09-01")]


def test_registrations_without_a_version_are_numbered_by_their_date(catalog: Catalog) -> None:
    report(catalog, *(dataset_message("a.b", business_date="2026-09-01") for _ in range(2)))
    assert versions(catalog, "a.b") == [
        ("2026-09-01.1", "SUPERSEDED", "2026-09-01"),
        ("2026-09-01.2", "READY", "2026-09-01"),
    ]


def test_the_output_of_a_successful_run_is_a_version_and_of_a_failed_one_is_not(
    catalog: Catalog,
) -> None:
    for run, status in (("1", "SUCCESS"), ("2", "FAILED")):
        report(
            catalog,
            process_message("AUTOSYS/EOD/LOAD", "STARTED", run_id=run),
            process_message(
                "AUTOSYS/EOD/LOAD", status, run_id=run, outputs=["a.b"], business_date="2026-09-01"
            ),
        )
    assert versions(catalog, "a.b") == [("2026-09-01.1", "READY", "2026-09-01")]


def test_the_path_of_a_version_is_kept(catalog: Catalog) -> None:
    place = Path("/landing/positions.csv")
    report(catalog, dataset_message("a.b", "v1", path=str(place)))
    with catalog.reading() as session:
        (version,) = list_versions(session, find_dataset(session, "a.b").dataset_id)
        assert version.path == str(place)
