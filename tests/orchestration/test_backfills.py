"""Validation of backfills: ranges, partitions and batch sizes; and cutting of batches."""

from pathlib import Path

import pytest
from dagster import (
    AssetKey,
    DagsterEvent,
    DagsterEventType,
    DagsterInstance,
    DynamicPartitionsDefinition,
    partition_loading_context,
)
from dagster._core.events import JobFailureData, RunFailureReason

from floe.orchestration.backfilling.batches import Batch, cut
from floe.orchestration.backfilling.interruptions import is_interruption
from floe.orchestration.backfills import InvalidRangeError, keys_of_range, scope_of
from floe.orchestration.definitions import build_parts
from floe.orchestration.loading import load
from floe.spec import SpecError
from tests.orchestration.projects import load_parts, make_project

ASSETS = """
    from dagster import (
        AssetSpec, StaticPartitionsDefinition, asset, graph_asset, multi_asset, op
    )

    @asset(key_prefix="bronze")
    def orders(): ...

    @asset(key_prefix="other")
    def loose(): ...

    @asset(key_prefix="five")
    def some(): ...

    @asset(key_prefix="own", partitions_def=StaticPartitionsDefinition(["a", "b", "c"]))
    def lettered(): ...

    @op
    def one(): ...

    @graph_asset(key_prefix="drawn")
    def picture():
        return one()

    @multi_asset(specs=[AssetSpec(["pair", "left"]), AssetSpec(["pair", "right"])])
    def both(): ...
"""
HEAD = """
name: test
orchestration:
  asset_modules: [mine]
  partitions:
    daily: {type: time_window, start: 2026-01-01, end: 2026-03-01, calendar: TARGET}
    hourly: {type: time_window, start: 2026-01-01-00, end: 2026-01-02-00, cron_schedule: "@hourly",
             fmt: "%Y-%m-%d-%H"}
    regions: {type: static, partition_keys: [us, eu, asia]}
    clients: {type: dynamic}
    by_region: {type: multi, partitions: {region: regions, z_day: daily}}
    by_client: {type: multi, partitions: {client: clients, day: daily}}
  assets:
"""


def project(folder: Path, partitions: str, backfill: str, selection: str = "bronze.*") -> Path:
    # The selection leads the rules of floe.yaml to the partitions; what only the load knows,
    # assets of other patterns show.
    pattern = selection if selection != "*" else "bronze.*"
    policy = ", backfill_policy: {max_partitions_per_run: 5}" if "five" in selection else ""
    assets = (
        f'    "{pattern}": {{partitions: {partitions}{policy}}}\n' if partitions else "    {}\n"
    )
    jobs = f'  jobs: {{job: {{type: batch, selection: ["{selection}"]}}}}\n'
    return make_project(
        folder, f"{HEAD}{assets}{jobs}  backfills: {{all: {backfill}}}\n", {"mine.py": ASSETS}
    )


def refusal(folder: Path) -> str:
    with pytest.raises(SpecError) as stopped:
        load_parts(folder)
    return str(stopped.value)


def backfill(start: str, end: str, more: str = "") -> str:
    return f'{{job: job, partition_range: {{start: "{start}", end: "{end}"}}{more}}}'


def keys(folder: Path, start: str, end: str) -> list[str]:
    loading = load(folder)
    scope = scope_of(loading, build_parts(loading), "all")
    return [str(key) for key in keys_of_range(scope.partitions, start, end)]


def test_a_range_of_days_leaves_out_non_business_days(tmp_path: Path) -> None:
    project(tmp_path, "daily", backfill("2026-01-08", "2026-01-13"))
    assert keys(tmp_path, "2026-01-08", "2026-01-13") == [
        "2026-01-08",
        "2026-01-09",
        "2026-01-12",
        "2026-01-13",
    ]


def test_a_range_of_listed_keys_follows_their_order(tmp_path: Path) -> None:
    project(tmp_path, "regions", backfill("us", "eu"))
    assert keys(tmp_path, "us", "asia") == ["us", "eu", "asia"]


def test_the_time_key_is_enough_with_two_dimensions(tmp_path: Path) -> None:
    project(tmp_path, "by_region", backfill("2026-01-08", "2026-01-09"))
    assert keys(tmp_path, "2026-01-08", "2026-01-09") == [
        "us|2026-01-08",
        "eu|2026-01-08",
        "asia|2026-01-08",
        "us|2026-01-09",
        "eu|2026-01-09",
        "asia|2026-01-09",
    ]
    assert keys(tmp_path, "eu|2026-01-08", "asia|2026-01-09") == [
        "eu|2026-01-08",
        "asia|2026-01-08",
        "eu|2026-01-09",
        "asia|2026-01-09",
    ]


def test_dynamic_keys_are_looked_up_when_the_backfill_runs(tmp_path: Path) -> None:
    project(tmp_path, "clients", backfill("acme", "zeta"))
    load_parts(tmp_path)
    definition = DynamicPartitionsDefinition(name="clients")
    with DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("clients", ["acme", "midway", "zeta"])
        with partition_loading_context(dynamic_partitions_store=instance):
            result = keys_of_range(definition, "acme", "zeta")
            assert list(result) == ["acme", "midway", "zeta"]
            with pytest.raises(
                InvalidRangeError, match=r"no partition 'acmee'. Did you mean 'acme'"
            ):
                keys_of_range(definition, "acmee", "zeta")


@pytest.mark.parametrize(
    ("partitions", "range_", "expected"),
    [
        (
            "daily",
            ("2026-01-10", "2026-01-13"),
            "partition_range.start: there is no partition '2026-01-10'. The next is 2026-01-12.",
        ),
        (
            "by_region",
            ("2025-12-31", "2026-01-13"),
            "partition_range.start: there is no partition '2025-12-31'. The first is 2026-01-02.",
        ),
        (
            "by_region",
            ("2026-01-08", "2026-03-02"),
            "partition_range.end: there is no partition '2026-03-02'. The last is 2026-02-27.",
        ),
        (
            "by_region",
            ("8 January", "2026-01-13"),
            "partition_range.start: there is no partition '8 January'. Write it as %Y-%m-%d",
        ),
        (
            "by_region",
            ("us|2026-01-08", "erde|2026-01-13"),
            "partition_range.end: there is no partition 'erde'. Choose one of: asia, eu, us.",
        ),
        (
            "by_region",
            ("asia|2026-01-08", "us|2026-01-13"),
            "partition_range.end: the end us is before the start asia. Swap them.",
        ),
        (
            "by_region",
            ("us|2026-01-08|x", "us|2026-01-13"),
            "partition_range.start: 'us|2026-01-08|x' is not a key of region|z_day. "
            "Write it as region|z_day.",
        ),
    ],
)
def test_an_unknown_bound_is_rejected_with_the_nearest_key(
    tmp_path: Path, partitions: str, range_: tuple[str, str], expected: str
) -> None:
    project(tmp_path, partitions, backfill(*range_))
    assert f"orchestration.backfills.all.{expected}" in refusal(tmp_path)


def test_partitions_that_only_python_declares_are_checked_too(tmp_path: Path) -> None:
    project(tmp_path, "", backfill("a", "d"), "own.*")
    assert "partition_range.end: there is no partition 'd'" in refusal(tmp_path)


def test_a_job_without_partitions_cannot_be_backfilled(tmp_path: Path) -> None:
    project(tmp_path, "", backfill("2026-01-08", "2026-01-13", ", partitions: daily"), "other.*")
    message = "orchestration.backfills.all.job: the assets of 'job' have no partitions."
    assert message in refusal(tmp_path)


def test_partitions_that_no_asset_of_the_job_has_are_rejected(tmp_path: Path) -> None:
    more = ", partitions: regions"
    project(tmp_path, "daily", backfill("us", "eu", more))
    message = (
        "orchestration.backfills.all.partitions: no asset of 'job' has the partitions 'regions'."
    )
    assert f"{message} Its partitions: daily." in refusal(tmp_path)


def test_a_batch_must_not_exceed_the_backfill_policy_of_an_asset(tmp_path: Path) -> None:
    more = ", batch_size: 6"
    project(tmp_path, "daily", backfill("2026-01-08", "2026-01-13", more), "five.*")
    message = (
        "orchestration.backfills.all.batch_size: is 6, but five.some takes at most 5 in one run."
    )
    assert f"{message} Use 5 or less." in refusal(tmp_path)


def test_a_graph_of_ops_takes_one_partition_at_a_time(tmp_path: Path) -> None:
    more = ", batch_size: 2"
    project(tmp_path, "daily", backfill("2026-01-08", "2026-01-13", more), "drawn.*")
    assert "batch_size: is 2, but drawn.picture is a graph of ops" in refusal(tmp_path)
    project(tmp_path, "daily", backfill("2026-01-08", "2026-01-13"), "drawn.*")
    load_parts(tmp_path)


def test_inseparable_assets_are_missing_together(tmp_path: Path) -> None:
    project(tmp_path, "daily", backfill("2026-01-08", "2026-01-13"), "pair.*")
    loading = load(tmp_path)
    scope = scope_of(loading, build_parts(loading), "all")
    left, right = AssetKey(["pair", "left"]), AssetKey(["pair", "right"])
    assert scope.missing(frozenset({left})) == {left, right}
    assert scope.missing(frozenset({left, right})) == frozenset()


A, B = AssetKey("a"), AssetKey("b")
BOTH, SECOND, NONE = frozenset({A, B}), frozenset({B}), frozenset[AssetKey]()


def test_batches_have_at_most_the_given_number_of_keys_in_order() -> None:
    keys = [f"k{index:03}" for index in range(23)]
    batches = list(cut(keys, dict.fromkeys(keys, BOTH), 10))
    assert [len(batch.keys) for batch in batches] == [10, 10, 3]
    assert [key for batch in batches for key in batch.keys] == keys


def test_done_keys_are_left_out_and_keys_that_lack_the_same_assets_share_a_batch() -> None:
    missing = {"1": NONE, "2": NONE, "3": SECOND, "4": SECOND, "5": BOTH, "6": NONE, "7": BOTH}
    assert list(cut(list(missing), missing, 10)) == [
        Batch(("3", "4"), SECOND),
        Batch(("5",), BOTH),
        Batch(("7",), BOTH),
    ]


@pytest.mark.parametrize(
    ("size", "lengths"),
    [(1, [1] * 9), (2, [2, 1] * 3), (3, [3, 3, 3]), (5, [3, 3, 3]), (7, [6, 3]), (100, [9])],
)
def test_with_a_second_dimension_a_batch_is_whole_dates_or_part_of_one_date(
    size: int, lengths: list[int]
) -> None:
    keys = [f"{day}|{region}" for day in "123" for region in "abc"]
    batches = list(cut(keys, dict.fromkeys(keys, BOTH), size, width=3))
    assert [len(batch.keys) for batch in batches] == lengths
    assert [key for batch in batches for key in batch.keys] == keys


@pytest.mark.parametrize(
    ("reason", "interrupted"),
    [
        (RunFailureReason.UNEXPECTED_TERMINATION, True),
        (RunFailureReason.STEP_FAILURE, False),
        (None, False),
    ],
)
def test_a_run_that_a_signal_ended_between_two_steps_counts_as_interrupted(
    reason: RunFailureReason | None, interrupted: bool
) -> None:
    ended = DagsterEvent(
        event_type_value=DagsterEventType.RUN_FAILURE.value,
        job_name="nightly",
        event_specific_data=JobFailureData(None, reason),
    )
    assert is_interruption(ended) is interrupted
