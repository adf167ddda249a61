"""Names of datasets, processes, runs and versions in floe and other tools."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floe.spec.identity import (
    DatasetId,
    ProcessId,
    VersionTagError,
    business_date_of_key,
    dagster_job,
    dagster_key,
    dataset_of_dagster_key,
    dbt_process,
    floe_process,
    parse_version_tag,
    process_of_key,
    run_id,
    version_tag,
)


def test_dataset_converts_to_a_dagster_key_and_back() -> None:
    assert dagster_key("bronze.raw_customers") == ["bronze", "raw_customers"]
    assert dataset_of_dagster_key(["bronze", "raw_customers"]) == "bronze.raw_customers"


def test_full_name_contains_the_namespace() -> None:
    assert DatasetId("lake", "credit.exposure").full_name == "lake/credit.exposure"


@pytest.mark.parametrize(
    ("process", "key"),
    [
        (floe_process("credit-risk", "credit.exposure"), "floe/credit-risk/credit.exposure"),
        (dbt_process("shop", "stg_orders"), "dbt/shop/stg_orders"),
        (ProcessId("AUTOSYS", "NIGHT/LOAD_FX"), "AUTOSYS/NIGHT/LOAD_FX"),
        (ProcessId("s3://bucket", "a/b"), "s3://bucket/a/b"),
        (ProcessId("spark", "job"), "spark/job"),
    ],
)
def test_process_key_converts_to_its_id_and_back(process: ProcessId, key: str) -> None:
    assert process.key == key
    assert process_of_key(key) == process


def test_run_id_is_the_same_for_the_same_attempt_and_no_other() -> None:
    first = run_id("dagster-1", "exposure", "2026-09-01", 1)
    assert first == run_id("dagster-1", "exposure", "2026-09-01", 1)
    others = {
        run_id("dagster-2", "exposure", "2026-09-01", 1),
        run_id("dagster-1", "limits", "2026-09-01", 1),
        run_id("dagster-1", "exposure", "2026-09-02", 1),
        run_id("dagster-1", "exposure", "2026-09-01", 2),
        run_id("dagster-1", "exposure"),
    }
    assert len(others | {first}) == 6


def test_run_id_never_changes_between_releases() -> None:
    assert str(run_id("r", "s")) == "b9242404-b004-5c3d-b028-c7261cb5df81"


def test_version_tag_is_date_and_count() -> None:
    assert version_tag(date(2026, 9, 1), 1) == "2026-09-01.1"
    assert parse_version_tag("2026-09-01.12") == ("2026-09-01", 12)


@given(st.text(min_size=1), st.integers(min_value=1))
def test_version_tag_can_be_parsed(partition: str, count: int) -> None:
    assert parse_version_tag(version_tag(partition, count)) == (partition, count)


@pytest.mark.parametrize("tag", ["", "2026-09-01", ".1", "2026-09-01.", "a.0", "a.-1", "a.x"])
def test_invalid_version_tag_is_rejected(tag: str) -> None:
    with pytest.raises(VersionTagError, match="is not a version tag"):
        parse_version_tag(tag)


def test_business_date_is_the_key_of_the_time_partition() -> None:
    assert business_date_of_key("2026-09-01") == date(2026, 9, 1)
    assert business_date_of_key("20260901-06", "%Y%m%d-%H") == date(2026, 9, 1)


def test_dagster_job_is_a_separate_process() -> None:
    job = dagster_job("shop", "nightly")
    assert job.key == "dagster/shop/nightly"
    assert process_of_key(job.key) == job
