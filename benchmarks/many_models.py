"""A dbt project with many models, and as many floe processes that read them."""

from pathlib import Path
from typing import Any

import yaml

SOURCES = 50
LAYER = 100
"""Number of models that read a source; each of the others reads two models."""
PROJECT = {
    "name": "many",
    "version": "1.0",
    "config-version": 2,
    "profile": "many",
    "models": {"many": {"+materialized": "table", "+schema": "silver"}},
}
MACRO = """\
{% macro generate_schema_name(custom_schema_name, node) -%}
    {{ custom_schema_name if custom_schema_name else target.schema }}
{%- endmacro %}
"""


def write_dbt(folder: Path, size: int) -> None:
    """Write a dbt project: models with columns, each with a test."""
    models = folder / "models"
    models.mkdir(parents=True)
    (folder / "macros").mkdir()
    (folder / "macros/generate_schema_name.sql").write_text(MACRO)
    (folder / "dbt_project.yml").write_text(yaml.safe_dump(PROJECT))
    for number in range(size):
        (models / f"m{number}.sql").write_text(f"select id, amount from {_read(number)}\n")
    tables = [{"name": f"raw_{number}"} for number in range(SOURCES)]
    properties = {
        "version": 2,
        "sources": [{"name": "bronze", "schema": "bronze", "tables": tables}],
        "models": [_described(number) for number in range(size)],
    }
    (models / "models.yml").write_text(yaml.safe_dump(properties))


def floe_yaml(size: int, processes: int) -> str:
    """Declare a project with that dbt project and processes that each read a model."""
    declared: dict[str, Any] = {"name": "many", "transforms": [{"type": "dbt", "path": "dbt"}]}
    datasets: dict[str, Any] = {}
    if processes:
        datasets = {f"silver.m{number}": {} for number in range(size)}
        declared["processes"] = {
            f"gold.p{number}": {
                "description": f"What is made of model {number % size}.",
                "inputs": {"model": f"silver.m{number % size}"},
                "sql": "select id, sum(amount) as amount from model group by id",
                "outputs": {"made": f"gold.p{number}"},
            }
            for number in range(processes)
        }
    for number in range(processes):
        datasets[f"gold.p{number}"] = {"checks": [{"kind": "not_null", "columns": ["id"]}]}
    return yaml.safe_dump({**declared, "datasets": datasets}, sort_keys=False)


def _read(number: int) -> str:
    if number < LAYER:
        return f"{{{{ source('bronze', 'raw_{number % SOURCES}') }}}}"
    one, other = number - LAYER, number - LAYER // 2
    return f"{{{{ ref('m{one}') }}}} join {{{{ ref('m{other}') }}}} using (id)"


def _described(number: int) -> dict[str, Any]:
    key = {
        "name": "id",
        "description": "Which one.",
        "data_type": "bigint",
        "data_tests": ["not_null"],
    }
    return {
        "name": f"m{number}",
        "description": f"Model {number}.",
        "columns": [key, {"name": "amount", "data_type": "double"}],
    }
