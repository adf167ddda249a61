"""A small dbt project with every kind of node."""

from collections.abc import Mapping

FLOE_YAML = """
transforms:
  - {type: dbt, path: dbt}
"""

PROJECT = """
name: bank
version: "1.0"
config-version: 2
profile: bank
flags: {send_anonymous_usage_stats: false}
models:
  bank:
    +materialized: table
    +file_format: iceberg
    silver: {+schema: silver}
    gold: {+schema: gold}
seeds:
  bank: {+schema: silver, +file_format: iceberg}
snapshots:
  bank: {+schema: history, +file_format: iceberg}
"""

MACRO = """
{% macro generate_schema_name(custom_schema_name, node) -%}
    {{ custom_schema_name if custom_schema_name else target.schema }}
{%- endmacro %}
"""

PROPERTIES = """
groups:
  - name: treasury
    owner: {name: Treasury, email: treasury@example.com}

sources:
  - name: feeds
    schema: bronze
    tables:
      - name: trades
        identifier: raw_trades
        columns:
          - name: id
            data_tests: [not_null]

models:
  - name: booked
    description: Trades that count.
    config: {tags: [nightly, "of the bank"]}
    columns:
      - name: id
        description: The number of a trade.
        data_type: bigint
        data_tests:
          - unique
          - not_null: {config: {severity: warn}}
  - name: exposure
    config:
      group: treasury
  - name: limits_used
    config:
      meta: {dagster: {group: reports, owners: [risk@example.com]}}
"""

FILES: Mapping[str, str] = {
    "dbt/dbt_project.yml": PROJECT,
    "dbt/macros/generate_schema_name.sql": MACRO,
    "dbt/models/properties.yml": PROPERTIES,
    "dbt/models/silver/booked.sql": "select * from {{ source('feeds', 'trades') }}",
    "dbt/models/silver/converted.sql": """
        {{ config(materialized='ephemeral') }}
        select b.id, b.amount * r.rate as amount, b.day
        from {{ ref('booked') }} b join {{ ref('rates') }} r on r.currency = b.currency
    """,
    "dbt/models/gold/exposure.sql": """
        {{ config(materialized='view', alias='exposure_today') }}
        select sum(amount) as amount from {{ ref('converted') }}
    """,
    "dbt/models/gold/limits_used.sql": """
        {{ config(materialized='incremental') }}
        select day, sum(amount) as amount from {{ ref('converted') }}
        where day >= cast('{{ var("floe_start") }}' as date) group by day
    """,
    "dbt/seeds/rates.csv": "currency,rate\nEUR,1\nUSD,2\n",
    "dbt/snapshots/booked_then.sql": """
        {% snapshot booked_then %}
        {{ config(strategy='check', unique_key='id', check_cols='all') }}
        select * from {{ ref('booked') }}
        {% endsnapshot %}
    """,
    "dbt/tests/nothing_is_lost.sql": """
        select 1 from {{ ref('exposure') }} e cross join {{ ref('limits_used') }} l
        where e.amount < l.amount
    """,
}

ASSETS = {
    "silver.booked",
    "silver.rates",
    "gold.exposure_today",
    "gold.limits_used",
    "history.booked_then",
}
