"""A dataset has the same name in every environment: no schema may depend on dbt's target."""

from collections.abc import Iterator

from floe.orchestration.dbt.nodes import Manifest, Node, assets_of, dataset_of
from floe.orchestration.dbt.project import DbtProject
from floe.orchestration.loading import Loading
from floe.spec.findings import Finding, SpecError

MACRO = """\
{% macro generate_schema_name(custom_schema_name, node) -%}
    {{ custom_schema_name if custom_schema_name else target.schema }}
{%- endmacro %}"""


def check_names(loading: Loading, project: DbtProject, manifest: Manifest) -> None:
    """Refuse models whose names would differ between environments, or are the same."""
    findings = list(_find(loading, project, manifest))
    if findings:
        raise SpecError(findings)


def _find(loading: Loading, project: DbtProject, manifest: Manifest) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for node in assets_of(manifest).values():
        message, hint = _wrong(node)
        dataset = dataset_of(node)
        if not message and dataset in seen:
            message = f"{_named(node)} is '{dataset}', and so is {seen[dataset]}"
            hint = "Give one of them another alias or schema."
        if message:
            yield loading.finding(project.declared, message, hint)
        seen[dataset] = _named(node)


def _wrong(node: Node) -> tuple[str, str]:
    wanted = node["config"].get("schema") or node["config"].get("target_schema")
    if not wanted:
        message = f"{_named(node)} names no schema, and would be in that of the target"
        return message, "Give it one, such as +schema: silver in dbt_project.yml."
    if node["schema"] != wanted:
        message = f"{_named(node)} asks for schema '{wanted}' and is put into '{node['schema']}'"
        return message, f"Add macros/generate_schema_name.sql to the dbt project:\n{MACRO}"
    written = str(node.get("unrendered_config", {}).get("schema", ""))
    if "target" in written and "{{" in written:
        message = f"{_named(node)} has a schema that depends on the target: {written}"
        return message, "Write the schema as it is in every environment."
    return "", ""


def _named(node: Node) -> str:
    return f"{node['resource_type']} '{node['name']}' ({node['original_file_path']})"
