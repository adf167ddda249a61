"""Validating a big project, compared with parsing its YAML, and how the cost grows.

A typical dataset and process, repeated a thousand times, in one warm process.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml

from benchmarks.result import Result
from benchmarks.timing import fastest
from floe.settings import ProjectPaths
from floe.spec import validate_project

REPETITIONS = 8

DATASET = """
  credit.exposure_{i}:
    description: Exposure per counterparty, book {i}
    format: csv
    location: landing/exposure_{i}/{{business_date}}/*.csv
    manifest: {{kind: json, rows: true, checksum: sha256}}
    category: credit
    tags: [eod, risk]
    owner: {{team: Credit Risk, email: credit-risk@example.com}}
    schema:
      - {{name: counterparty_id, type: bigint, nullable: false}}
      - {{name: exposure, type: "decimal(18,2)"}}
      - {{name: as_of, type: date}}
    sla: {{due: "06:30", timezone: Europe/London, calendar: TARGET, day_offset: 1}}
    checks:
      - {{kind: unique, columns: [counterparty_id]}}
      - name: no_negative
        sql: select count(*) from {{dataset}} where exposure < 0
        expect: "= 0"
"""
PROCESS = """
  credit.aggregate_{i}:
    description: Adds up book {i}
    inputs:
      exposure: credit.exposure_{i}
      previous: {{dataset: credit.exposure_{before}, mapping: previous_business_day}}
    outputs: {{total: credit.exposure_{after}}}
    trigger: dataset
    steps:
      - {{name: by_party, sql: select counterparty_id from exposure}}
      - {{name: total, sql: select count(*) from by_party}}
    params: {{threshold: 0.5, region: EMEA}}
    sla: {{max_duration: 20m}}
    retry: {{max_attempts: 3, delay: 30s, backoff: exponential}}
    timeout: 1h
"""


def project_text(size: int) -> str:
    """Write a project with a number of datasets and processes, each feeding the next."""
    datasets = "".join(DATASET.format(i=i) for i in range(size + 1))
    processes = "".join(PROCESS.format(i=i, before=max(i - 1, 0), after=i + 1) for i in range(size))
    return f"name: credit-risk\ndatasets:{datasets}\nprocesses:{processes}"


def run() -> Iterator[Result]:
    with tempfile.TemporaryDirectory() as folder:
        big, small = (_project(Path(folder), size) for size in (1000, 100))
        text = big.floe_yaml.read_text(encoding="utf-8")
        parse, validate, validate_small = fastest(
            REPETITIONS,
            lambda: yaml.load(text, yaml.CSafeLoader),
            lambda: _validate(big),
            lambda: _validate(small, times=10),
        )
    yield Result(
        "validate 1,000 datasets + 1,000 processes / parse their YAML",
        validate / parse,
        1.0,
        note=f"{validate * 1000:.0f} ms / {parse * 1000:.0f} ms",
    )
    yield Result(
        "validate 1,000 + 1,000 / ten times 100 + 100",
        validate / validate_small,
        1.3,
        note=f"{validate * 1000:.0f} ms / {validate_small * 1000:.0f} ms",
    )


def _project(folder: Path, size: int) -> ProjectPaths:
    root = folder / str(size)
    root.mkdir()
    paths = ProjectPaths(root)
    paths.floe_yaml.write_text(project_text(size), encoding="utf-8")
    return paths


def _validate(paths: ProjectPaths, times: int = 1) -> None:
    for _ in range(times):
        findings = validate_project(paths, environ={}).findings
        if findings:
            raise AssertionError(f"the project of the benchmark is wrong: {findings[0]}")
