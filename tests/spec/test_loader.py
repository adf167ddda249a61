"""Load a project: variables, types, opaque values, platforms, and what a right one looks like."""

from collections.abc import Callable
from datetime import time, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from floe.settings import ProjectPaths
from floe.spec import SpecError, load_platform, load_project, validate_project
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


def test_the_example_of_the_design_loads(write: Write) -> None:
    spec = load_project(write(EXAMPLE, SQL), {}).spec

    fx, process = spec.datasets["market.fx_rates"], spec.processes["credit.exposure_daily"]
    assert fx.sla is not None
    assert (fx.sla.due, fx.sla.day_offset) == (time(6, 30), 1)
    assert process.inputs["fx"] == Input(dataset="market.fx_rates")
    assert process.runs_on == "spark_sql"
    assert process.retry.delay == timedelta(seconds=30)
    assert spec.datasets["credit.positions"].format == "iceberg"
    assert spec.calendar_named("TARGET").name == "TARGET"


def test_variables_take_the_type_that_their_key_wants(write: Write) -> None:
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


def test_wrong_default_is_a_finding(find: Find) -> None:
    assert find("name: x\ntimezone: ${ZONE:Mars}\n") == [
        "floe.yaml:2: timezone: 'Mars' is not a time zone. "
        "Write it as Area/City, such as Europe/London."
    ]


def test_what_is_no_variable_is_a_finding(find: Find) -> None:
    assert find("name: x\ndescription: costs ${5}\n") == [
        "floe.yaml:2: description: '${5}' does not name a variable. "
        "Write ${NAME} or ${NAME:default}, or $${ for the text ${ itself."
    ]


def test_opaque_value_hides_nothing_else_of_its_element(find: Find) -> None:
    findings = find(
        """
        name: x
        datasets:
          credit.exposure: {partitions: dayly, retention: "${KEEP}"}
        orchestration:
          partitions:
            daily: {type: time_window, start: "${START}", end: "2026-01-01"}
          schedules:
            night: {job: nope, cron_schedule: "${CRON}", enabled: "${ON}", fnord: 1}
          sensors:
            late: {type: "${KIND}", job: "${JOB}"}
            files: {type: file_watcher, job: "${JOB}", path: x, poll_interval_seconds: "${POLL}"}
          backfills:
            all: {job: "${JOB}", partition_range: {start: "2020", end: "${END}"}, batch_size: x}
        """
    )
    assert [finding.split(": ", 2)[0::2] for finding in findings] == [
        ["floe.yaml:4", "no partitions named 'dayly'. Did you mean 'daily'?"],
        [
            "floe.yaml:9",
            "unknown key. Known here: cron_schedule, description, enabled, job, "
            "partition_selector, timezone.",
        ],
        ["floe.yaml:9", "no job named 'nope'. Declare it under orchestration.jobs."],
        ["floe.yaml:14", "must be a whole number, not 'x'. Write it as 10."],
    ]


def test_consistency_that_rests_on_an_opaque_value_is_not_judged(find: Find) -> None:
    assert not find(
        """
        name: x
        datasets: {a.in: {}, a.out: {writers: "${WRITERS}"}}
        processes:
          a.first: {outputs: {out: a.out}, sql: select 1}
          a.second: {inputs: {in: "${DATASET}"}, outputs: {out: a.out}, sql: select 1}
          a.third: {outputs: {out: "${DATASET}"}, sql: select 1}
        """
    )


def test_whole_mapping_may_come_from_a_variable_only_as_text(find: Find) -> None:
    assert not find("name: x\ndatasets: {a.b: {owner: '${OWNER}', tags: '${TAGS}'}}")


def test_wrong_parts_do_not_hide_references_of_the_rest(find: Find) -> None:
    findings = find(
        """
        name: x
        datasets:
          credit.exposure:
            checks:
              - {kind: not_nul, columns: [id]}
              - {kind: unique, columns: [idd]}
              - {kind: unique, columns: 5}
              - {kind: referential, columns: [id], dataset: credit.partys}
            schema: [{name: id, type: bigint}]
          credit.parties: {formt: csv}
        """
    )
    assert findings == [
        "floe.yaml:6: datasets.credit.exposure.checks[0].kind: 'not_nul' is not a known kind. "
        "Did you mean 'not_null'?",
        "floe.yaml:7: datasets.credit.exposure.checks[1].columns[0]: "
        "no column named 'idd' in the schema. Did you mean 'id'?",
        "floe.yaml:8: datasets.credit.exposure.checks[2].columns: must be a list, not '5'. "
        "Write it as [a, b], or one '- item' a line.",
        "floe.yaml:9: datasets.credit.exposure.checks[3].dataset: "
        "no dataset named 'credit.partys'. Did you mean 'credit.parties'?",
        "floe.yaml:11: datasets.credit.parties.formt: unknown key. Did you mean 'format'?",
    ]


def test_reference_to_a_wrong_declaration_is_no_second_finding(find: Find) -> None:
    findings = find(
        """
        name: x
        orchestration:
          jobs: {nightly: {type: bach, selection: ["*"]}}
          schedules: {night: {job: nightly, cron_schedule: "@daily"}}
        """
    )
    assert findings == [
        "floe.yaml:4: orchestration.jobs.nightly.type: 'bach' is not a known type. "
        "Did you mean 'batch'?"
    ]


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("", "floe.yaml:1: the file is empty. Write key: value in it."),
        ("- a\n", "floe.yaml:1: the file must be a mapping of keys. Write key: value in it."),
        ("{}\n", "floe.yaml:1: name: is missing. Add it."),
        ("version: '1'\n", "floe.yaml:1: name: is missing. Add it."),
        ("name: [x]\n", "floe.yaml:1: name: must be text, not a list. "
         "Write one value, not a list or a mapping."),
        ("name: x\ndatasets: text\n", "floe.yaml:2: datasets: must be a mapping, not 'text'. "
         "Write it as key: value."),
        ("name: x\ngovernance: {approval: maybe}\n",
         "floe.yaml:2: governance.approval: must be true or false, not 'maybe'. "
         "Write true or false."),
        ("name: x\nname: y\n", "floe.yaml:2: name: the key 'name' is given twice, first on line 1. "
         "Keep one of them."),
        ("name: x\ndatasets:\n  exposure: {}\n",
         "floe.yaml:3: datasets.exposure: 'exposure' is not a dataset name. "
         "Write it as schema.table in lower case, such as credit.exposure."),
        ("name: x\nsuper_unknown_thing: 1\n",
         "floe.yaml:2: super_unknown_thing: unknown key. Known here: calendar, calendars, catalog, "
         "compute, datasets, description, governance, name, observability, orchestration, "
         "processes, storage, timezone, transforms, version."),
        ("name: x\norchestration: {jobs: {a: {selection: [x]}}}\n",
         "floe.yaml:2: orchestration.jobs.a.type: is missing. Add it."),
        ("name: x\norchestration: {sensors: {a: {type: custom, job: b, target_function: f}}}\n",
         "floe.yaml:2: orchestration.sensors.a.target_function: 'f' is not a function. "
         "Write it as module.function, such as risk.scoring.rate."),
        ("name: x\nprocesses: {p: {sql: select 1, outputs: {}}}\n",
         "floe.yaml:2: processes.p.outputs: must not be empty. Add what is missing."),
    ],
)  # fmt: skip
def test_one_mistake_is_one_finding(find: Find, text: str, finding: str) -> None:
    findings = [one for one in find(text) if "no job named" not in one]
    assert findings == [finding]


def test_extension_keys_are_a_home_for_anchors(find: Find) -> None:
    assert not find(
        """
        x-owner: &owner {team: "${TEAM:Credit Risk}"}
        name: x
        datasets: {credit.exposure: {owner: *owner}}
        """
    )


SCALARS = st.sampled_from(
    ["x", "5", "true", "${A}", "${B:1}", "@daily", "20m", "", "[a]", "{b: 1}"]
)
KEYS = st.sampled_from(
    ["name", "datasets", "processes", "orchestration", "jobs", "a.b", "type", "checks", "sla",
     "inputs", "outputs", "sql", "steps", "partitions", "sensors", "owner", "kind", "include"]
)  # fmt: skip


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
        max_leaves=25,
    )
)
def test_any_tree_loads_or_gives_findings(tmp_path: Path, tree: object) -> None:
    text = repr(tree).replace("'[a]'", "[a]").replace("'{b: 1}'", "{b: 1}")
    (tmp_path / "floe.yaml").write_text(text, encoding="utf-8")
    paths = ProjectPaths(tmp_path)
    validate_project(paths, {})
    try:
        load_project(paths, {"A": "1"})
    except SpecError:
        return


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


def test_wrong_platform_file_is_refused_with_its_name_and_line(write: Write) -> None:
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
        assert "is not a regular expression" in str(finding)


def test_every_platform_file_must_offer_what_the_project_names(find: Find) -> None:
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


def test_password_in_an_address_is_a_finding_that_does_not_repeat_it(find: Find) -> None:
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
        "platform.yaml:3: catalog.default.url: holds a password. "
        "Take it out, and write password: secret://env/NAME."
    )


def test_plain_secret_is_a_finding_that_does_not_repeat_it(find: Find) -> None:
    (finding,) = find("name: x", {"platform.yaml": "catalog: {default: {password: hunter2}}\n"})
    assert "must be a reference to a secret" in finding
    assert "hunter2" not in finding


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("nme: x", "nme"),
        ("name: x\ndatasets: {a.b: {checks: [{sql: x, expct: '0'}]}}", "expct"),
        ("name: x\ndatasets: {a.b: {owner: {taem: Risk}}}", "taem"),
        ("name: x\norchestration: {jobs: {a: {tpye: batch, selection: ['*']}}}", "tpye"),
        ("name: x\ndatasets: {a.b: {}}\nprocesses: {p: {outptus: {o: a.b}, sql: x}}", "outptus"),
        ("name: x\ndatasets: {a.b: {}}\nprocesses: {p: {outputs: {o: a.b}, sqll: x}}", "sqll"),
        (
            "name: x\ndatasets: {a.b: {}}\n"
            "processes: {p: {outputs: {o: a.b}, engine: python, functon: a.b}}",
            "functon",
        ),
        ("name: x\ngovernance: {require: [owner]}\ndatasets: {a.b: {ownr: {team: x}}}", "ownr"),
        (
            "name: x\ndatasets: {a.b: {kyes: [id]}}\nprocesses:\n"
            "  p: {outputs: {o: {dataset: a.b, write: merge}}, sql: x}",
            "kyes",
        ),
        (
            "name: x\ndatasets: {a.b: {writrs: many}}\nprocesses:\n"
            "  p: {outputs: {o: a.b}, sql: x}\n  q: {outputs: {o: a.b}, sql: x}",
            "writrs",
        ),
        ("name: x\norchestration: {sensors: {s: {type: run_status, ntify: log}}}", "ntify"),
    ],
)
def test_mistyped_key_is_not_missing_too(find: Find, text: str, key: str) -> None:
    (finding,) = find(text)
    assert f"{key}: unknown key. Did you mean '" in finding


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("format: jdbc, options: [connection]", "options: must be a mapping, not a list"),
        ("format: [csv], options: {delimiter: ';'}", "format: must be text, not a list"),
        ("schema: [{name: id, type: bigin}], keys: [id]", "'bigin' is not a column type"),
        ("schema: [{type: bigint}], keys: [id]", "schema[0].name: is missing"),
        ("checks: [{kind: unique, columns: [{a: b}]}]", "columns[0]: must be text"),
        ("checks: [{kind: range, column: a, max: 1, mni: 0}]", "mni: unknown key"),
        ("checks: [{kind: row_count, min: few}]", "min: must be a whole number"),
    ],
)
def test_what_follows_from_a_mistake_is_no_second_finding(
    find: Find, body: str, message: str
) -> None:
    (finding,) = find(f"name: x\ndatasets: {{a.b: {{{body}}}}}")
    assert message in finding


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("inputs: [a.b], sql: x, trigger: dataset", "inputs: must be a mapping, not a list"),
        ("steps: [{name: a, sql: [x]}]", "sql: must be text, not a list"),
    ],
)
def test_what_follows_from_a_mistake_in_a_process_is_no_second_finding(
    find: Find, body: str, message: str
) -> None:
    (finding,) = find(
        f"name: x\ndatasets: {{a.b: {{}}}}\nprocesses: {{p: {{outputs: {{o: a.b}}, {body}}}}}"
    )
    assert message in finding
