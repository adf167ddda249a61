"""Loading of Python assets, and the errors it reports."""

from pathlib import Path

import pytest
from dagster import AssetCheckKey, AssetKey, DagsterInstance, materialize

from floe.orchestration.assets import CircularAssetsError
from floe.orchestration.metadata import PRODUCER_CHECK
from floe.spec import SpecError
from tests.orchestration.projects import load_definitions, load_parts, make_project, spec_of

BRONZE = """
    from dagster import asset

    @asset(
        key_prefix="bronze", group_name="raw", description="As delivered.", kinds={"python"},
        owners=["team:crm"], tags={"domain": "sales"},
    )
    def raw_customers(): ...
"""
GOLD = """
    from dagster import AssetSpec, asset, asset_check

    feed = AssetSpec(["legacy", "feed"])

    @asset(key_prefix="gold", deps=[["bronze", "raw_customers"], feed])
    def revenue(): return 1

    @asset_check(asset=revenue)
    def is_positive(): ...
"""


def modules(*names: str) -> str:
    return f"orchestration:\n  asset_modules: [{', '.join(names)}]\n"


def names(folder: Path) -> list[str]:
    return sorted(".".join(key.path) for key in load_parts(folder).specs)


def refusal(folder: Path) -> str:
    with pytest.raises(SpecError) as stopped:
        load_parts(folder)
    return str(stopped.value)


@pytest.mark.parametrize(
    "listed",
    [
        ["jobs.bronze", "jobs.gold"],
        [".jobs.bronze", ".jobs.gold"],
        ["jobs"],
        [".jobs", "jobs.gold"],
    ],
    ids=["absolute", "relative", "a package", "both"],
)
def test_assets_of_every_module_are_loaded(tmp_path: Path, listed: list[str]) -> None:
    files = {"jobs/__init__.py": "", "jobs/bronze.py": BRONZE, "jobs/gold.py": GOLD}
    make_project(tmp_path, modules(*listed), files)
    assert names(tmp_path) == ["bronze.raw_customers", "gold.revenue", "legacy.feed"]
    keys = {key for check in load_parts(tmp_path).checks for key in check.check_keys}
    assert keys == {
        AssetCheckKey(AssetKey(["gold", "revenue"]), "is_positive"),
        AssetCheckKey(AssetKey(["legacy", "feed"]), PRODUCER_CHECK),
    }
    load_definitions(tmp_path)


def test_packages_are_loaded_recursively_without_init_files(tmp_path: Path) -> None:
    files = {"jobs/deep/er/bronze.py": BRONZE, "jobs/gold.py": GOLD}
    make_project(tmp_path, modules("jobs"), files)
    assert names(tmp_path) == ["bronze.raw_customers", "gold.revenue", "legacy.feed"]


def test_scripts_of_a_package_are_not_run(tmp_path: Path) -> None:
    files = {"jobs/__main__.py": "raise SystemExit(3)", "jobs/bronze.py": BRONZE}
    make_project(tmp_path, modules("jobs"), files)
    assert names(tmp_path) == ["bronze.raw_customers"]


def test_the_attributes_of_the_decorator_are_kept(tmp_path: Path) -> None:
    make_project(tmp_path, modules("bronze"), {"bronze.py": BRONZE})
    spec = spec_of(load_parts(tmp_path), "bronze.raw_customers")
    assert spec.group_name == "raw"
    assert spec.description == "As delivered."
    assert spec.kinds == {"python"}
    assert spec.owners == ["team:crm"]
    assert spec.tags["domain"] == "sales"


def test_an_asset_runs_as_it_is_written(tmp_path: Path) -> None:
    text = """
        from dagster import MaterializeResult, asset

        @asset
        def answer() -> MaterializeResult:
            import helper
            return MaterializeResult(metadata={"found": helper.x})
    """
    make_project(tmp_path, modules("answers"), {"answers.py": text, "helper.py": "x = 42"})
    parts = load_parts(tmp_path)
    with DagsterInstance.ephemeral() as instance:
        result = materialize(list(parts.assets), instance=instance, resources=parts.resources)
    (event,) = result.asset_materializations_for_node("answer")
    assert event.metadata["found"].value == 42


def test_assets_in_lists_are_found_and_imported_ones_belong_to_the_first(tmp_path: Path) -> None:
    many = """
        from dagster import asset
        from bronze import raw_customers

        def make(name):
            @asset(name=name, deps=[raw_customers])
            def made(): ...
            return made

        many = [make("a"), make("b")]
        more = (make("c"),)
    """
    files = {"bronze.py": BRONZE, "many.py": many}
    make_project(tmp_path, modules("many", "bronze"), files)
    assert names(tmp_path) == ["a", "b", "bronze.raw_customers", "c"]


def test_a_spec_that_belongs_to_a_function_is_no_second_asset(tmp_path: Path) -> None:
    text = """
        from dagster import AssetSpec, multi_asset

        one, two = AssetSpec("one"), AssetSpec("two")

        @multi_asset(specs=[one, two])
        def both(): ...
    """
    make_project(tmp_path, modules("both"), {"both.py": text})
    assert len(load_parts(tmp_path).assets) == 1
    assert names(tmp_path) == ["one", "two"]


def test_jobs_schedules_and_sensors_of_a_module_are_loaded(tmp_path: Path) -> None:
    text = """
        from dagster import ScheduleDefinition, asset, define_asset_job, sensor

        @asset
        def one(): ...

        nightly = define_asset_job("nightly", selection="one")
        at_night = ScheduleDefinition("at_night", job=nightly, cron_schedule="0 2 * * *")

        @sensor(job=nightly)
        def looks(): ...
    """
    make_project(tmp_path, modules("jobs"), {"jobs.py": text})
    definitions = load_definitions(tmp_path)
    result = definitions.get_repository_def()
    assert result.get_schedule_def("at_night").job_name == "nightly"
    assert result.get_sensor_def("looks").job_name == "nightly"


def test_a_job_of_a_module_with_a_name_from_floe_yaml_is_rejected(tmp_path: Path) -> None:
    text = "from dagster import define_asset_job\nnightly = define_asset_job('nightly')\n"
    floe_yaml = modules("mine") + "  jobs:\n    nightly: {type: batch, selection: ['*']}\n"
    make_project(tmp_path, floe_yaml, {"mine.py": text})
    assert refusal(tmp_path) == (
        "floe.yaml:5: orchestration.jobs.nightly: mine.py defines one with the same name. "
        "Keep one of them."
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = 1\ndef broken(:\n", "jobs/bronze.py:2: invalid syntax"),
        ("import no_such_library", "jobs/bronze.py:1: ModuleNotFoundError: No module named"),
        ("\n\nfrom helper import boom\nboom()", "helper.py:2: ZeroDivisionError: division by zero"),
        (
            "from dagster import asset\n\n@asset(key='a', name='b')\ndef x(): ...",
            "jobs/bronze.py:3: DagsterInvalidDefinitionError",
        ),
        ("import sys\nsys.exit(2)", "jobs/bronze.py:2: SystemExit: 2"),
    ],
    ids=["syntax", "import", "called", "dagster", "exit"],
)
def test_a_broken_module_is_named_with_its_file_and_line(
    tmp_path: Path, text: str, reason: str
) -> None:
    helper = "def boom():\n    return 1 / 0\n"
    make_project(tmp_path, modules("jobs"), {"jobs/bronze.py": text, "helper.py": helper})
    assert refusal(tmp_path).startswith(
        f"floe.yaml:3: orchestration.asset_modules[0]: 'jobs' cannot be imported: {reason}"
    )


def test_every_missing_module_is_named(tmp_path: Path) -> None:
    listed = modules("jobs.bronzs", ".elsewhere", "..above", "json")
    make_project(tmp_path, listed, {"jobs/bronze.py": BRONZE})
    assert refusal(tmp_path).splitlines() == [
        "floe.yaml:3: orchestration.asset_modules[0]: 'jobs.bronzs' cannot be imported: there is "
        f"no module 'jobs.bronzs' in {tmp_path} or on the Python path. "
        "Did you mean 'jobs.bronze'?",
        "floe.yaml:3: orchestration.asset_modules[1]: there is no module 'elsewhere' in the "
        "project's folder. If it is installed, write it without the dot.",
        "floe.yaml:3: orchestration.asset_modules[2]: '..above' is outside the project folder. "
        "Use one leading dot: it means the folder of floe.yaml.",
    ]


def test_one_key_in_two_modules_names_both(tmp_path: Path) -> None:
    make_project(tmp_path, modules("one", "two"), {"one.py": BRONZE, "two.py": BRONZE})
    assert refusal(tmp_path) == (
        "floe.yaml:3: orchestration.asset_modules[1]: the asset 'bronze.raw_customers' is defined "
        "in one.py and in two.py. Keep one of them."
    )


def test_two_projects_in_one_process_keep_their_modules_apart(tmp_path: Path) -> None:
    template = (
        "from dagster import asset\nfrom shared import name\n\n@asset(name=name)\ndef x(): ..."
    )
    for project in ("one", "two"):
        files = {"jobs/assets.py": template, "shared.py": f"name = 'of_{project}'"}
        make_project(tmp_path / project, modules("jobs"), files)
    make_project(tmp_path / "three", modules("jobs"))
    assert names(tmp_path / "one") == ["of_one"]
    assert names(tmp_path / "two") == ["of_two"]
    assert names(tmp_path / "one") == ["of_one"]
    assert "there is no module 'jobs'" in refusal(tmp_path / "three")


def test_a_module_that_loads_the_project_is_rejected(tmp_path: Path) -> None:
    text = "from floe import FloeDefinitions\ndefs = FloeDefinitions.from_compiled_artifacts({})\n"
    files = {"jobs/definitions.py": text.format(repr(str(tmp_path)))}
    make_project(tmp_path, modules("jobs"), files)
    assert "jobs/definitions.py:2: NestedLoadError: the project is already being loaded" in refusal(
        tmp_path
    )


def test_assets_in_a_dependency_cycle_are_named(tmp_path: Path) -> None:
    text = """
        from dagster import asset

        @asset(deps=["c"])
        def a(): ...

        @asset(deps=["a"])
        def b(): ...

        @asset(deps=["b"])
        def c(): ...
    """
    make_project(tmp_path, modules("circle"), {"circle.py": text})
    with pytest.raises(CircularAssetsError, match=r"in a cycle: a → b → c → a\. Remove one"):
        load_parts(tmp_path)


def test_an_asset_may_depend_on_its_own_earlier_date(tmp_path: Path) -> None:
    text = """
        from dagster import AssetDep, DailyPartitionsDefinition, TimeWindowPartitionMapping, asset

        yesterday = TimeWindowPartitionMapping(start_offset=-1, end_offset=-1)

        @asset(
            partitions_def=DailyPartitionsDefinition("2026-09-01"),
            deps=[AssetDep("balance", partition_mapping=yesterday)],
        )
        def balance(): ...
    """
    make_project(tmp_path, modules("balances"), {"balances.py": text})
    assert names(tmp_path) == ["balance"]


@pytest.mark.filterwarnings("ignore::dagster.BetaWarning")
def test_a_source_asset_is_rejected_with_its_replacement(tmp_path: Path) -> None:
    text = """
        from dagster import observable_source_asset

        @observable_source_asset
        def feed(): ...
    """
    make_project(tmp_path, modules("feeds"), {"feeds.py": text})
    assert "write it as AssetSpec(['feed'])." in refusal(tmp_path)
