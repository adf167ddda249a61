"""Load projects and platforms with the variables of the environment."""

import gc
from collections.abc import Callable
from datetime import time, timedelta

import pytest

from floe.settings import ProjectPaths
from floe.spec import SpecError, load_platform, load_project, validate_project
from floe.spec.loader import collector_paused
from floe.spec.processes import Input

Write = Callable[..., ProjectPaths]
Find = Callable[..., list[str]]

EXAMPLE = """
    name: credit-risk
    datasets:
      market.fx_rates:
        format: csv
        location: landing/fx/{business_date}/*.csv
        manifest: {kind: json, rows: true, checksum: sha256}
        category: market
        owner: {team: Market Data, email: market-data@example.com}
        sla: {due: "06:30", timezone: Europe/London, calendar: TARGET, day_offset: 1}
      credit.positions:
      credit.exposure:
        owner: {team: Credit Risk, email: credit-risk@example.com}
        checks:
          - {name: no_negative, sql: "select count(*) from {dataset} where exposure < 0",
             expect: "= 0", on_fail: reject}
    processes:
      credit.exposure_daily:
        inputs: {positions: credit.positions, fx: market.fx_rates}
        outputs: {exposure: credit.exposure}
        trigger: dataset
        steps:
          - {name: in_eur, sql: sql/in_eur.sql}
          - {name: exposure, sql: sql/exposure.sql}
        sla: {max_duration: 20m}
        retry: {max_attempts: 3, delay: 30s, backoff: exponential}
    """
SQL = {"sql/in_eur.sql": "select 1", "sql/exposure.sql": "select 1"}


def test_a_complete_example_loads(write: Write) -> None:
    spec = load_project(write(EXAMPLE, SQL), {}).spec

    fx, process = spec.datasets["market.fx_rates"], spec.processes["credit.exposure_daily"]
    assert fx.sla is not None
    assert (fx.sla.due, fx.sla.day_offset) == (time(6, 30), 1)
    assert process.inputs["fx"] == Input(dataset="market.fx_rates")
    assert process.runs_on == "spark_sql"
    assert process.retry.delay == timedelta(seconds=30)
    assert spec.datasets["credit.positions"].format == "iceberg"
    assert spec.calendar_named("TARGET").name == "TARGET"


def test_variables_take_the_type_of_their_key(write: Write) -> None:
    paths = write(
        """
        name: ${NAME}
        version: ${VERSION:1.10}
        datasets:
          credit.exposure:
            retention: {versions: "${KEEP:5}"}
            partition_column: ${COLUMN:}
        processes:
          credit.load:
            outputs: {exposure: credit.exposure}
            command: ["run", "${FLAG:true}"]
            params:
              limit: "${LIMIT:10}"
              rate: 0.50
              code: "007"
              factor: ${FACTOR:2}
        orchestration:
          jobs: {nightly: {type: batch, selection: ["*"]}}
          schedules:
            night:
              job: nightly
              cron_schedule: ${CRON:0 6 * * *}
              enabled: ${SCHEDULE_ENABLED:false}
        """
    )
    environ = {"NAME": "credit-risk", "SCHEDULE_ENABLED": "true", "KEEP": "7", "FACTOR": "2.5"}
    spec = load_project(paths, environ).spec

    process, exposure = spec.processes["credit.load"], spec.datasets["credit.exposure"]
    assert (spec.name, spec.version) == ("credit-risk", "1.10")
    assert exposure.retention is not None
    assert exposure.retention.versions == 7
    assert exposure.partition_column is None
    assert process.command == ("run", "true")
    assert process.params == {"limit": "10", "rate": 0.5, "code": "007", "factor": 2.5}
    assert spec.orchestration.schedules["night"].enabled is True
    assert spec.orchestration.schedules["night"].cron_schedule == "0 6 * * *"


def test_missing_variable_names_variable_key_and_line(write: Write) -> None:
    paths = write("name: x\ntimezone: ${ZONE}\ndescription: ${ZONE} and ${OTHER:fine}\n")
    with pytest.raises(SpecError) as failure:
        load_project(paths, {})
    assert str(failure.value) == (
        "floe.yaml:2: timezone: the variable ZONE is not set. "
        "Set it in the environment, or give it a default: ${ZONE:…}.\n"
        "floe.yaml:3: description: the variable ZONE is not set. "
        "Set it in the environment, or give it a default: ${ZONE:…}."
    )


def test_value_from_the_environment_is_checked_at_load(write: Write) -> None:
    paths = write("name: x\ntimezone: ${ZONE}\n")
    assert not validate_project(paths, {}).findings
    with pytest.raises(SpecError, match=r"floe\.yaml:2: timezone: 'Mars' is not a"):
        load_project(paths, {"ZONE": "Mars"})


def test_validate_ignores_the_environment(write: Write) -> None:
    paths = write("name: x\ntimezone: ${ZONE:UTC}\n")
    assert not validate_project(paths, {"ZONE": "Mars"}).findings


def test_invalid_default_is_a_finding(find: Find) -> None:
    assert find("name: x\ntimezone: ${ZONE:Mars}\n") == [
        "floe.yaml:2: timezone: 'Mars' is not a time zone. "
        "Write it as Area/City, such as Europe/London."
    ]


PLATFORM = """
    environment: production
    compute:
      default: {url: sc://spark.example.com:15002, token: secret://env/SPARK_TOKEN}
    connections:
      risk_db: {jdbc_url: "jdbc:sqlite:risk.db"}
    notifications:
      oncall: {type: log}
    """


def test_embedded_platform_needs_no_file(write: Write) -> None:
    platform = load_platform(write("name: x"), {})
    assert platform.compute["default"].url is None
    assert platform.catalog["default"].url == "sqlite:///.floe/catalog.db"
    assert platform.lake.name == "lake"


def test_environment_selects_the_platform_file(write: Write) -> None:
    paths = write("name: x", {"platform.prod.yaml": PLATFORM})
    assert load_platform(paths, {"FLOE_PLATFORM_ENV": "prod"}).environment == "production"
    assert load_platform(paths, {}).environment == "development"


def test_invalid_platform_file_is_rejected_with_its_name_and_line(write: Write) -> None:
    paths = write("name: x", {"platform.yaml": "compute:\n  default: {url: http://spark}\n"})
    with pytest.raises(SpecError, match=r"platform.yaml:2: compute.default.url: 'http://spark'"):
        load_platform(paths, {})


def test_a_date_pattern_needs_year_month_and_day(find: Find) -> None:
    pattern = r"_(?P<year>\d{4})(?P<month>\d{2})"
    (finding,) = find("name: x", {"platform.yaml": f"events: {{date_patterns: ['{pattern}']}}\n"})
    assert "has no group named day" in str(finding)
    for broken in ("(", "[a-"):
        (finding,) = find(
            "name: x", {"platform.yaml": f"events: {{date_patterns: ['{broken}']}}\n"}
        )
        assert "is not a valid regular expression" in str(finding)


def test_every_platform_file_must_declare_what_the_project_uses(find: Find) -> None:
    project = """
        name: x
        compute: big
        datasets:
          credit.parties:
            format: jdbc
            options: {connection: risk_bd, table: parties}
            sla: {due: "06:30", notify: oncal}
        processes:
          credit.load:
            outputs: {parties: credit.parties}
            command: load
            pool: loaders
        """
    assert find(project, {"platform.prod.yaml": PLATFORM}) == [
        "floe.yaml:3: compute: platform.prod.yaml has no compute profile named 'big'. "
        "Declare it there under compute.",
        "floe.yaml:7: datasets.credit.parties.options.connection: "
        "platform.prod.yaml has no connection named 'risk_bd'. Did you mean 'risk_db'?",
        "floe.yaml:8: datasets.credit.parties.sla.notify: "
        "platform.prod.yaml has no channel named 'oncal'. Did you mean 'oncall'?",
        "floe.yaml:13: processes.credit.load.pool: "
        "platform.prod.yaml has no pool named 'loaders'. "
        "Declare it there under orchestrator.pools.",
    ]


def test_password_in_a_url_is_a_finding_that_does_not_repeat_it(find: Find) -> None:
    (finding,) = find(
        "name: x",
        {
            "platform.yaml": """
            catalog:
              default: {url: "postgresql://floe:hunter2@db/floe"}
              other: {url: "postgresql://floe:${PW}@db/floe"}
            """
        },
    )
    assert finding == (
        "platform.yaml:3: catalog.default.url: contains a password. "
        "Remove it, and set password: secret://env/NAME."
    )


def test_plain_secret_is_a_finding_that_does_not_repeat_it(find: Find) -> None:
    (finding,) = find("name: x", {"platform.yaml": "catalog: {default: {password: hunter2}}\n"})
    assert "must be a reference to a secret" in finding
    assert "hunter2" not in finding


def test_garbage_collector_is_paused_during_load() -> None:
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_garbage_collector_that_was_disabled_stays_disabled() -> None:
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_loaded_objects_are_in_the_oldest_generation() -> None:
    with collector_paused():
        objects: list[list[object]] = [[] for _ in range(10)]
    old = {id(item) for item in gc.get_objects(generation=2)}
    assert {id(item) for item in objects} <= old


def test_objects_frozen_by_others_stay_frozen() -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with collector_paused():
            pass
        assert gc.get_freeze_count() == frozen
    finally:
        gc.unfreeze()
