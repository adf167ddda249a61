"""Includes: patterns, duplicates, and files outside the project."""

from collections.abc import Callable
from pathlib import Path

import pytest

from floe.settings import ProjectPaths
from floe.spec import load_project

Write = Callable[..., ProjectPaths]
Find = Callable[..., list[str]]

CREDIT = "credit.exposure:\n  format: parquet\n"
MARKET = "market.fx_rates:\n  format: csv\nmarket.prices:\n"


def test_section_is_a_list_of_patterns(write: Write) -> None:
    files = {"datasets/credit.yaml": CREDIT, "datasets/market.yaml": MARKET}
    spec = load_project(write("name: x\ndatasets: [datasets/*.yaml]\n", files), {}).spec
    assert list(spec.datasets) == ["credit.exposure", "market.fx_rates", "market.prices"]


def test_section_can_have_names_and_an_include(write: Write) -> None:
    text = "name: x\ndatasets:\n  include: datasets/*.yaml\n  credit.limits: {}\n"
    spec = load_project(write(text, {"datasets/credit.yaml": CREDIT}), {}).spec
    assert set(spec.datasets) == {"credit.limits", "credit.exposure"}


def test_sections_of_orchestration_can_include_files(write: Write) -> None:
    text = "name: x\norchestration: {jobs: [jobs/**/*.yaml]}\n"
    files = {"jobs/night/a.yaml": "nightly: {type: batch, selection: ['*']}\n"}
    assert "nightly" in load_project(write(text, files), {}).spec.orchestration.jobs


def test_finding_in_an_included_file_names_that_file(find: Find) -> None:
    files = {"datasets/credit.yaml": "credit.exposure:\n  owner:\n    email: nobody\n"}
    assert find("name: x\ndatasets: [datasets/*.yaml]\n", files) == [
        "datasets/credit.yaml:2: datasets.credit.exposure.owner.team: is missing. Add it.",
        "datasets/credit.yaml:3: datasets.credit.exposure.owner.email: "
        "'nobody' is not an e-mail address. Write it as team@example.com.",
    ]


def test_variable_in_an_included_file_is_resolved(write: Write) -> None:
    files = {"datasets/credit.yaml": "credit.exposure:\n  description: ${WHAT:none}\n"}
    paths = write("name: x\ndatasets: [datasets/*.yaml]\n", files)
    spec = load_project(paths, {"WHAT": "Exposure"}).spec
    assert spec.datasets["credit.exposure"].description == "Exposure"


def test_name_declared_in_two_files_reports_both(find: Find) -> None:
    files = {"datasets/a.yaml": f"\n{CREDIT}", "datasets/b.yaml": CREDIT}
    assert find("name: x\ndatasets: [datasets/*.yaml]\n", files) == [
        "datasets/b.yaml:1: datasets.credit.exposure: 'credit.exposure' is already declared at "
        "datasets/a.yaml:2. Remove or rename one of them."
    ]


def test_name_declared_inline_and_in_a_file_reports_both(find: Find) -> None:
    text = "name: x\ndatasets:\n  include: [d.yaml]\n  credit.exposure: {}\n"
    assert find(text, {"d.yaml": CREDIT}) == [
        "d.yaml:1: datasets.credit.exposure: 'credit.exposure' is already declared at "
        "floe.yaml:4. Remove or rename one of them."
    ]


def test_file_that_two_patterns_match_counts_once(find: Find) -> None:
    assert not find("name: x\ndatasets: [d.yaml, '*d.yaml']\n", {"d.yaml": CREDIT})


def test_include_without_matches_is_a_finding(find: Find) -> None:
    text = "name: x\ndatasets:\n  - d.yaml\n  - dataset/*.yaml\n"
    assert find(text, {"d.yaml": CREDIT}) == [
        "floe.yaml:4: datasets[1]: 'dataset/*.yaml' matches no file. "
        "Check the pattern, or create the file."
    ]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("../*.yaml", "'../*.yaml' is outside the project folder"),
        ("/etc/*.yaml", "'/etc/*.yaml' is outside the project folder"),
        ("'**.yaml'", "'**.yaml' is not a valid pattern"),
        ("{a: b}", "an include must be a pattern"),
        ("'${DIR}/*.yaml'", "the variable DIR has no default"),
        ("'${DIR'", "'${DIR' has no closing brace"),
    ],
)
def test_invalid_include_pattern_is_a_finding(find: Find, pattern: str, message: str) -> None:
    (finding,) = find(f"name: x\ndatasets: [{pattern}]\n")
    assert finding.startswith(f"floe.yaml:2: datasets[0]: {message}")


def test_pattern_takes_the_default_of_its_variable(write: Write) -> None:
    paths = write("name: x\ndatasets: ['${DIR:data}/*.yaml']\n", {"data/a.yaml": CREDIT})
    assert "credit.exposure" in load_project(paths, {"DIR": "elsewhere"}).spec.datasets


def test_link_out_of_the_project_is_not_followed(
    find: Find, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "secret.yaml"
    outside.write_text(CREDIT, encoding="utf-8")
    (tmp_path / "d.yaml").symlink_to(outside)
    (finding,) = find("name: x\ndatasets: [d.yaml]\n")
    assert "is outside the project folder" in finding


def test_included_file_that_is_not_yaml_hides_no_other_mistake(find: Find) -> None:
    text = """
        name: x
        timezone: Mars
        datasets: [d.yaml]
        processes: {p: {sql: select 1, outputs: {e: credit.exposure}}}
        """
    findings = find(text, {"d.yaml": "a: [\n"})
    assert [finding.split(": ")[0] for finding in findings] == ["d.yaml:1", "floe.yaml:3"]


def test_included_file_that_is_a_list_is_a_finding(find: Find) -> None:
    assert find("name: x\ndatasets: [d.yaml]\n", {"d.yaml": "- a\n"}) == [
        "d.yaml:1: an included file must be a mapping of names. "
        "Write the same content as under 'datasets'."
    ]


def test_empty_included_file_declares_nothing(find: Find) -> None:
    assert not find("name: x\ndatasets: [d.yaml]\n", {"d.yaml": "# later\n"})


def test_included_files_can_define_anchors(find: Find) -> None:
    text = "x-risk: &risk {team: Credit Risk}\ncredit.exposure: {owner: *risk}\n"
    assert not find("name: x\ndatasets: [d.yaml]\n", {"d.yaml": text})


def test_names_of_missing_files_are_not_also_unknown(find: Find) -> None:
    text = """
        name: x
        datasets:
          include: [dataset/*.yaml]
          credit.exposure: {format: parqet}
        processes:
          p: {inputs: {fx: market.fx_rates}, outputs: {e: credit.exposure}, sql: x}
        """
    findings = find(text, {"datasets/market.yaml": MARKET})
    assert [finding.split(":")[1] for finding in findings] == ["4", "5"]


def test_references_to_an_invalid_section_are_not_findings(find: Find) -> None:
    text = """
        name: x
        orchestration:
          jobs: nightly
          schedules: {night: {job: nightly, cron_schedule: "@daily"}}
        """
    (finding,) = find(text)
    assert "orchestration.jobs: must be a mapping" in finding
