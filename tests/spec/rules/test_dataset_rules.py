"""Rules for datasets: consistency and references."""

from collections.abc import Callable

import pytest

Find = Callable[..., list[str]]


def dataset(body: str) -> str:
    """A project with one dataset; its keys start on line 4."""
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    return f"name: x\ndatasets:\n  credit.exposure:\n{lines}\n"


@pytest.mark.parametrize(
    ("body", "finding"),
    [
        ("format: parqet", "4: format: no format named 'parqet'. Did you mean 'parquet'?"),
        (
            "format: csv\noptions: {delimeter: ';'}",
            "5: options.delimeter: unknown key. Did you mean 'delimiter'?",
        ),
        (
            "format: csv\noptions:\n  bad_records: ignore",
            "6: options.bad_records: 'ignore' is not a valid value. Choose one of: fail, drop.",
        ),
        (
            "format: csv\noptions: {skip_lines: -1}",
            "5: options.skip_lines: must be at least 0, not -1. Change the number.",
        ),
        (
            "format: jdbc\noptions: {table: a}",
            "5: options.connection: is missing. Add it.",
        ),
        (
            "format: jdbc\noptions: {connection: c, table: a, query: b}",
            "5: options: needs either a table or a query. Give exactly one of them.",
        ),
        (
            "format: jdbc\noptions: {connection: c, query: sql/none.sql}",
            "5: options.query: the file 'sql/none.sql' does not exist. "
            "Create it, or check the path.",
        ),
        (
            "format: fixed_width",
            "3: schema: is missing. A fixed-width file needs a schema.",
        ),
        (
            "format: fixed_width\nschema:\n  - {name: a, type: string}",
            "6: schema[0].width: is missing. Give the number of characters of the column.",
        ),
        (
            "location: in/{busness_date}/*.csv",
            "4: location: no placeholder named '{busness_date}'. Did you mean 'business_date'?",
        ),
        (
            "location: in/{business_date/*.csv",
            "4: location: 'in/{business_date/*.csv' has an unclosed brace. Write {business_date}.",
        ),
        (
            "feed: {latest: 'out/{day}'}",
            "4: feed.latest: no placeholder named '{day}'. "
            "Choose one of: business_date, dataset, partition, run_id, version.",
        ),
        (
            "schema:\n  - {name: id, type: bigint}\n  - {name: id, type: string}",
            "6: schema[1].name: the column 'id' is duplicated. Keep one of them.",
        ),
        (
            "schema: [{name: id, type: bigin}]",
            "4: schema[0].type: 'bigin' is not a column type. Did you mean 'bigint'?",
        ),
        (
            "schema: [{name: counterparty_id, type: bigint}]\nkeys: [counterparty]",
            "5: keys[0]: no column named 'counterparty' in the schema. "
            "Did you mean 'counterparty_id'?",
        ),
        (
            "schema: [{name: id, type: bigint}]\npartition_column: day",
            "5: partition_column: no column named 'day' in the schema. Choose one of: id.",
        ),
        (
            "sla: {due: '06:30', calendar: TARGT}",
            "4: sla.calendar: no calendar named 'TARGT'. Did you mean 'TARGET'?",
        ),
        (
            "classification: secrt",
            "4: classification: no classification named 'secrt'. "
            "Choose one of: confidential, internal, public, restricted.",
        ),
        (
            "renamed_from: credit.exposure",
            "4: renamed_from: 'credit.exposure' is still declared. "
            "Remove it, or remove renamed_from of 'credit.exposure'.",
        ),
        (
            "manifest: {kind: jsn}",
            "4: manifest.kind: 'jsn' is not a known kind. Did you mean 'json'?",
        ),
        (
            "checks: [{kind: range, column: a}]",
            "4: checks[0]: has no bound. Give it a min or a max.",
        ),
        (
            "checks: [{kind: range, column: a, min: 5, max: 2}]",
            "4: checks[0].min: the min 5 is greater than the max 2. Swap them.",
        ),
        (
            "checks: [{sql: sql/none.sql, expect: '= 0'}]",
            "4: checks[0].sql: the file 'sql/none.sql' does not exist. "
            "Create it, or check the path.",
        ),
        (
            "checks: [{sql: ../none.sql, expect: '= 0'}]",
            "4: checks[0].sql: '../none.sql' is outside the project folder. "
            "Move the SQL file into the project folder.",
        ),
        (
            "checks: [{sql: select 1}]",
            "4: checks[0].expect: is missing. Add it.",
        ),
        (
            "checks: [{kind: referential, columns: [a, b], dataset: credit.exposure, "
            "to_columns: [c]}]",
            "4: checks[0].to_columns: has 1 columns; expected 2. Name as many as in columns.",
        ),
    ],
)
def test_mistake_in_a_dataset_is_found_on_its_line(find: Find, body: str, finding: str) -> None:
    line, rest = finding.split(": ", 1)
    assert find(dataset(body)) == [f"floe.yaml:{line}: datasets.credit.exposure.{rest}"]


def test_date_bounds_are_compared_as_dates(find: Find) -> None:
    body = "checks: [{kind: range, column: day, min: 2026-01-01, max: 2026-12-31}]"
    assert not find(dataset(body))


def test_location_can_format_the_business_date(find: Find) -> None:
    assert not find(dataset("location: 'in/{business_date:%Y%m%d}/*.csv'"))


def test_every_key_of_a_dataset_is_accepted(find: Find) -> None:
    body = """
        description: Exposure per counterparty
        owner: {team: Credit Risk, email: credit@example.com, steward: steward@example.com}
        category: credit
        tags: [eod]
        classification: confidential
        format: csv
        location: out/{business_date}/{version}
        storage: default
        options: {delimiter: ";", header: false, encoding: ISO-8859-1, bad_records: drop,
                  max_bad_records: 10, null_value: 0}
        manifest: {kind: trailer, prefix: T, rows_field: 2, checksum_field: 3, checksum: md5}
        schema:
          - {name: id, type: bigint, nullable: false, description: The party}
          - {name: amount, type: "decimal(18,2)", classification: restricted}
          - {name: day, type: date, format: dd.MM.yyyy}
        keys: [id]
        partition_column: day
        timezone: Europe/Berlin
        sla: {due: 18:30, day_offset: 1, max_age: 2d, warn_before: 30m,
              notify: [log], escalate: [{after: 1h, notify: log}]}
        checks:
          - {kind: row_count, min: 1, max: 1000000, max_change: 20%}
          - {kind: not_null, columns: [id]}
          - {kind: unique, columns: [id, day], on_fail: warn}
          - {kind: accepted_values, column: id, values: [1, 2, three]}
          - {kind: range, column: amount, min: 0}
          - {kind: referential, columns: [id], dataset: credit.exposure}
          - {kind: freshness, column: day, max_age: 1d}
        retention: {age: 90d, versions: 10}
        legal_hold: {reason: Case 4711, until: 2030-01-01}
        writers: many
        feed: {latest: out/latest, consumers: [{name: Regulator, email: reg@example.com}]}
        aliases: [{namespace: "s3://bucket", name: exposure}]
        renamed_from: credit.exposures
        """
    lines = "\n".join(line.removeprefix("        ") for line in body.strip("\n").splitlines())
    assert not find(dataset(lines))


def test_governance_can_require_keys_of_every_dataset(find: Find) -> None:
    findings = find(
        """
        name: x
        governance: {require: [owner, description, retention], default_retention: 90d}
        datasets:
          credit.exposure: {owner: {team: Credit Risk}}
        """
    )
    assert findings == [
        "floe.yaml:5: datasets.credit.exposure.description: "
        "is missing, but governance.require demands it. Add it."
    ]


def test_similar_sql_file_is_suggested(find: Find) -> None:
    (finding,) = find(
        dataset("checks: [{sql: sql/exposur.sql, expect: '0'}]"),
        {"sql/exposure.sql": "select 1"},
    )
    assert finding.endswith(
        "the file 'sql/exposur.sql' does not exist. Did you mean 'sql/exposure.sql'?"
    )


@pytest.mark.parametrize("kind", ["csv", "parquet", "files"])
def test_file_formats_reject_object_store_urls(find: Find, kind: str) -> None:
    (finding,) = find(dataset(f"format: {kind}\nlocation: s3a://bucket/a/{{business_date}}"))
    assert finding.startswith("floe.yaml:5: datasets.credit.exposure.location: 's3a://bucket/a/")
    assert "iceberg" in finding
