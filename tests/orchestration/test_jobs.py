"""Jobs of floe.yaml in Dagster."""

from pathlib import Path
from typing import Any

import pytest
from dagster import (
    AssetKey,
    AssetsDefinition,
    AssetSpec,
    DagsterInstance,
    DailyPartitionsDefinition,
    Definitions,
    StaticPartitionsDefinition,
    asset,
    multi_asset,
)
from dagster._core.definitions.utils import DISALLOWED_NAMES

from floe.orchestration.jobs import build_jobs
from floe.orchestration.loading import Loading, Parts, load
from floe.spec.findings import SpecError
from floe.spec.rules.orchestration_rules import RESERVED
from tests.orchestration.projects import make_project

DAILY = DailyPartitionsDefinition("2026-01-01")
REGIONS = StaticPartitionsDefinition(["eu", "us"])


@asset(key=["bronze", "orders"], group_name="bronze", tags={"pii": ""})
def bronze_orders() -> None: ...


@asset(key=["bronze", "customers"], group_name="bronze")
def bronze_customers() -> None: ...


@asset(key=["gold", "revenue"], group_name="gold", deps=[bronze_orders, ["feeds", "rates"]])
def revenue() -> None: ...


@asset(key="audit")
def audit() -> None: ...


@multi_asset(specs=[AssetSpec(["risk", "exposure"]), AssetSpec(["risk", "limits"])])
def risk() -> tuple[None, None]:
    return None, None


RATES = AssetSpec(["feeds", "rates"], group_name="feeds")
SHOP = Parts(assets=(bronze_orders, bronze_customers, revenue, audit, risk, RATES))


def loaded(folder: Path, declared: str, platform: str = "") -> Loading:
    """A project with jobs under `orchestration.jobs`, one per line."""
    lines = "\n".join(f"    {line.strip()}" for line in declared.strip().splitlines())
    files = {"platform.yaml": platform} if platform else {}
    return load(make_project(folder, f"orchestration:\n  jobs:\n{lines}\n", files))


def definitions(folder: Path, declared: str, parts: Parts = SHOP) -> Definitions:
    result = build_jobs(loaded(folder, declared), parts).definitions()
    Definitions.validate_loadable(result)
    return result


def refusal(folder: Path, declared: str, parts: Parts = SHOP) -> str:
    with pytest.raises(SpecError) as caught:
        build_jobs(loaded(folder, declared), parts)
    return str(caught.value)


def made_by(definitions: Definitions, job: str) -> set[str]:
    """The assets of a job, as Dagster resolves them."""
    layer = definitions.resolve_job_def(job).asset_layer
    return {".".join(key.path) for key in layer.selected_asset_keys}


def test_a_job_has_exactly_the_selected_assets(tmp_path: Path) -> None:
    result = definitions(tmp_path, "nightly: {type: batch, selection: [group:bronze]}")
    assert made_by(result, "nightly") == {"bronze.orders", "bronze.customers"}


def test_entries_of_a_selection_are_a_union(tmp_path: Path) -> None:
    result = definitions(tmp_path, "nightly: {type: batch, selection: [audit, gold.*, tag:pii]}")
    assert made_by(result, "nightly") == {"audit", "gold.revenue", "bronze.orders"}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("group:bronze or audit", {"bronze.orders", "bronze.customers", "audit"}),
        ("group:bronze and tag:pii", {"bronze.orders"}),
        ("group:bronze and not tag:pii", {"bronze.customers"}),
    ],
)
def test_a_selection_may_be_a_union_an_intersection_or_an_exclusion(
    tmp_path: Path, text: str, selected: set[str]
) -> None:
    result = definitions(tmp_path, f"nightly: {{type: batch, selection: ['{text}']}}")
    assert made_by(result, "nightly") == selected


def test_a_batch_job_runs_its_assets_with_the_tags_of_the_job(tmp_path: Path) -> None:
    declared = "nightly: {type: batch, selection: [+gold.revenue], tags: {team: sales}}"
    job = definitions(tmp_path, declared).resolve_job_def("nightly")
    with DagsterInstance.ephemeral() as instance:
        result = job.execute_in_process(instance=instance)
        run = instance.get_run_by_id(result.run_id)
    assert {event.asset_key for event in result.get_asset_materialization_events()} == {
        AssetKey(["bronze", "orders"]),
        AssetKey(["gold", "revenue"]),
    }
    assert run is not None
    assert run.tags["team"] == "sales"


def test_a_job_keeps_its_description(tmp_path: Path) -> None:
    declared = "nightly: {type: batch, selection: [audit], description: Who did what}"
    assert definitions(tmp_path, declared).resolve_job_def("nightly").description == "Who did what"


def test_external_assets_are_left_out_of_a_job(tmp_path: Path) -> None:
    result = definitions(tmp_path, "nightly: {type: batch, selection: [1+gold.revenue]}")
    assert made_by(result, "nightly") == {"gold.revenue", "bronze.orders"}


def test_a_job_of_external_assets_only_is_rejected(tmp_path: Path) -> None:
    message = refusal(tmp_path, "nightly: {type: batch, selection: [group:feeds]}")
    assert "orchestration.jobs.nightly.selection: matches only external assets" in message
    assert "feeds.rates" in message


def test_a_job_with_an_unknown_asset_is_rejected(tmp_path: Path) -> None:
    message = refusal(tmp_path, "nightly: {type: batch, selection: [audit, bronze.order]}")
    assert message == (
        "floe.yaml:4: orchestration.jobs.nightly.selection[1]: no asset is named 'bronze.order' "
        "(at character 1). Did you mean 'bronze.orders'?"
    )


def test_an_empty_selection_is_refused(tmp_path: Path) -> None:
    message = refusal(tmp_path, "nightly: {type: batch, selection: [group:gold and group:bronze]}")
    assert "floe.yaml:4: orchestration.jobs.nightly.selection[0]: " in message
    assert "'group:gold and group:bronze' matches no asset" in message


def test_all_errors_of_all_jobs_are_reported_together(tmp_path: Path) -> None:
    declared = """
    first: {type: batch, selection: [group:bronce, tag:pi]}
    second: {type: batch, selection: [audi]}
    """
    message = refusal(tmp_path, declared).splitlines()
    assert [line.split(": ")[1] for line in message] == [
        "orchestration.jobs.first.selection[0]",
        "orchestration.jobs.first.selection[1]",
        "orchestration.jobs.second.selection[0]",
    ]


def test_assets_with_different_partitions_in_one_job_are_rejected_at_load(tmp_path: Path) -> None:
    parts = Parts(assets=(partitioned("trades", DAILY), partitioned("sales", REGIONS)))
    message = refusal(tmp_path, "nightly: {type: batch, selection: ['*']}", parts)
    assert (
        "orchestration.jobs.nightly.selection: its assets have different partitions, but one run "
        "has one partition" in message
    )
    assert "trades by Daily" in message
    assert "sales by 'eu', 'us'" in message


def test_assets_with_and_without_partitions_share_a_job(tmp_path: Path) -> None:
    parts = Parts(assets=(partitioned("trades", DAILY), audit))
    result = definitions(tmp_path, "nightly: {type: batch, selection: ['*']}", parts)
    assert made_by(result, "nightly") == {"trades", "audit"}


def test_a_job_with_a_part_of_inseparable_assets_is_rejected(tmp_path: Path) -> None:
    message = refusal(tmp_path, "nightly: {type: batch, selection: [risk.limits]}")
    assert "selection: risk.limits cannot run without risk.exposure" in message


def test_a_job_with_the_name_of_an_asset_is_refused(tmp_path: Path) -> None:
    message = refusal(tmp_path, "audit: {type: batch, selection: [group:bronze]}")
    assert "orchestration.jobs.audit: the asset audit has the same name in Dagster" in message


@pytest.mark.parametrize("tag", ["two words", "dagster/partition", "a/b/c"])
def test_a_tag_that_dagster_does_not_accept_is_rejected(tmp_path: Path, tag: str) -> None:
    message = refusal(tmp_path, f"j: {{type: batch, selection: [audit], tags: {{'{tag}': x}}}}")
    assert f"orchestration.jobs.j.tags.{tag}: '{tag}' is not a valid tag" in message


def test_tags_that_configure_runs_are_allowed(tmp_path: Path) -> None:
    tags = "{dagster/priority: '3', dagster/max_retries: '2'}"
    result = definitions(tmp_path, f"j: {{type: batch, selection: [audit], tags: {tags}}}")
    assert result.resolve_job_def("j").run_tags["dagster/max_retries"] == "2"


CLUSTER = "compute: {default: {url: 'spark://cluster:7077'}}\n"


@pytest.mark.parametrize(
    ("platform", "declared", "executor"),
    [
        ("", "", ("in_process", None)),
        ("compute: {default: {url: 'local[2]'}}", "", ("in_process", None)),
        (CLUSTER, "", ("multiprocess", None)),
        (CLUSTER + "orchestrator: {pools: {spark: 6, small: 2}}", "", ("multiprocess", 6)),
        (CLUSTER + "orchestrator: {executor: in_process}", "", ("in_process", None)),
        ("orchestrator: {executor: multiprocess}", "", ("multiprocess", None)),
        (CLUSTER, ", executor: in_process", ("in_process", None)),
        ("", ", executor: multiprocess", ("multiprocess", None)),
        ("", ", executor: {type: multiprocess, max_concurrent: 3}", ("multiprocess", 3)),
        (
            CLUSTER + "orchestrator: {pools: {spark: 6}}",
            ", executor: {type: multiprocess, max_concurrent: 3}",
            ("multiprocess", 3),
        ),
    ],
)
def test_the_executor_is_that_of_the_job_else_the_platform_else_by_spark(
    tmp_path: Path, platform: str, declared: str, executor: tuple[str, int | None]
) -> None:
    loading = loaded(tmp_path, f"j: {{type: batch, selection: [audit]{declared}}}", platform)
    result = build_jobs(loading, SHOP)
    job = result.definitions().resolve_job_def("j")
    assert described(job.executor_def) == executor


def test_runs_without_a_job_of_floe_yaml_use_the_executor_of_the_platform(tmp_path: Path) -> None:
    loading = loaded(tmp_path, "j: {type: batch, selection: [audit]}", CLUSTER)
    result = build_jobs(loading, SHOP)
    assert described(result.executor) == ("multiprocess", None)


def test_max_concurrent_is_rejected_for_in_process(tmp_path: Path) -> None:
    executor = "{type: in_process, max_concurrent: 3}"
    message = refusal(tmp_path, f"j: {{type: batch, selection: [audit], executor: {executor}}}")
    assert "orchestration.jobs.j.executor.max_concurrent: has no effect with in_process" in message


def described(executor: Any) -> tuple[str, int | None]:
    """The kind of an executor, and how many steps it runs at once."""
    config = executor.apply_config_mapping({"config": {}}).value["config"]
    return executor.name, config.get("max_concurrent")


def partitioned(name: str, partitions: Any) -> AssetsDefinition:
    @asset(key=name, partitions_def=partitions)
    def made() -> None: ...

    return made


def test_the_names_that_dagster_reserves_are_those_that_floe_yaml_rejects() -> None:
    assert frozenset(DISALLOWED_NAMES) == RESERVED
