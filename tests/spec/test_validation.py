"""Findings for wrong keys and values: one per mistake, at its line."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from floe.settings import ProjectPaths
from floe.spec import SpecError, load_project, validate_project

Find = Callable[..., list[str]]


def test_invalid_variable_syntax_is_a_finding(find: Find) -> None:
    assert find("name: x\ndescription: costs ${5}\n") == [
        "floe.yaml:2: description: '${5}' does not name a variable. "
        "Write ${NAME} or ${NAME:default}, or $${ for the text ${ itself."
    ]


def test_unknown_value_does_not_hide_other_mistakes(find: Find) -> None:
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
            "unknown key. Valid keys: cron_schedule, description, enabled, job, "
            "partition_selector, timezone.",
        ],
        ["floe.yaml:9", "no job named 'nope'. Declare it under orchestration.jobs."],
        ["floe.yaml:14", "must be a whole number, not 'x'. Write it as 10."],
    ]


def test_rule_that_depends_on_an_unknown_value_is_skipped(find: Find) -> None:
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


def test_variable_cannot_replace_a_mapping(find: Find) -> None:
    assert not find("name: x\ndatasets: {a.b: {owner: '${OWNER}', tags: '${TAGS}'}}")


def test_invalid_parts_do_not_hide_unknown_references(find: Find) -> None:
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
        "Write it as [a, b], or one '- item' per line.",
        "floe.yaml:9: datasets.credit.exposure.checks[3].dataset: "
        "no dataset named 'credit.partys'. Did you mean 'credit.parties'?",
        "floe.yaml:11: datasets.credit.parties.formt: unknown key. Did you mean 'format'?",
    ]


def test_reference_to_an_invalid_declaration_is_not_a_second_finding(find: Find) -> None:
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
        ("", "floe.yaml:1: the file is empty. Add keys, as key: value."),
        ("- a\n", "floe.yaml:1: the file must be a mapping of keys. Add keys, as key: value."),
        ("{}\n", "floe.yaml:1: name: is missing. Add it."),
        ("version: '1'\n", "floe.yaml:1: name: is missing. Add it."),
        ("name: [x]\n", "floe.yaml:1: name: must be text, not a list. "
         "Write one value, not a list or a mapping."),
        ("name: x\ndatasets: text\n", "floe.yaml:2: datasets: must be a mapping, not 'text'. "
         "Write it as key: value."),
        ("name: x\ngovernance: {approval: maybe}\n",
         "floe.yaml:2: governance.approval: must be true or false, not 'maybe'. "
         "Write true or false."),
        ("name: x\nname: y\n", "floe.yaml:2: name: the key 'name' is duplicated; first on line 1. "
         "Keep one of them."),
        ("name: x\ndatasets:\n  exposure: {}\n",
         "floe.yaml:3: datasets.exposure: 'exposure' is not a dataset name. "
         "Write it as schema.table in lower case, such as credit.exposure."),
        ("name: x\nsuper_unknown_thing: 1\n",
         "floe.yaml:2: super_unknown_thing: unknown key. Valid keys: calendar, calendars, catalog, "
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
    findings = [finding for finding in find(text) if "no job named" not in finding]
    assert findings == [finding]


def test_extension_keys_can_define_anchors(find: Find) -> None:
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
def test_misspelled_key_is_not_also_missing(find: Find, text: str, key: str) -> None:
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
def test_consequence_of_a_mistake_is_not_a_second_finding(
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
def test_consequence_of_a_mistake_in_a_process_is_not_a_second_finding(
    find: Find, body: str, message: str
) -> None:
    (finding,) = find(
        f"name: x\ndatasets: {{a.b: {{}}}}\nprocesses: {{p: {{outputs: {{o: a.b}}, {body}}}}}"
    )
    assert message in finding
