"""How the catalog stores the reports of a legacy job."""

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
    """Record each message separately, as it would arrive."""
    recorder = Recorder(catalog.store)
    for message in messages:
        claim = read_claim(json.dumps(message).encode())
        assert record_group(catalog, recorder, [claim], clock.now()) == {}
    recorder.close()


def versions(catalog: Catalog, name: str) -> list[tuple[str, str, str]]:
    with catalog.reading() as session:
        dataset = find_dataset(session, name)
        return sorted(
            (version.version_tag, version.state, str(version.business_date))
            for version in list_versions(session, dataset.dataset_id)
        )


def test_a_version_registered_twice_is_one_version(catalog: Catalog) -> None:
    report(
        catalog,
        dataset_message("credit.positions", "v7", business_date="2026-09-01"),
        dataset_message("credit.positions", "v7", business_date="2026-09-01", rows=3),
    )
    assert versions(catalog, "credit.positions") == [("v7", "READY", "2026-09-01")]


def test_a_failed_version_becomes_ready_when_registered_again(catalog: Catalog) -> None:
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


def test_only_a_successful_run_creates_a_version_of_its_output(
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


def test_the_path_of_a_version_is_stored(catalog: Catalog) -> None:
    path = Path("/landing/positions.csv")
    report(catalog, dataset_message("a.b", "v1", path=str(path)))
    with catalog.reading() as session:
        (version,) = list_versions(session, find_dataset(session, "a.b").dataset_id)
        assert version.path == str(path)
