{{ config(materialized='incremental', incremental_strategy='merge', unique_key='paid_on') }}

select
    paid_on,
    count(*) as payments,
    sum(amount) as amount
from {{ ref('payments') }}
{% if var('floe_start', none) %}
where paid_on >= cast('{{ var("floe_start") }}' as date) and paid_on < cast('{{ var("floe_end") }}' as date)
{% endif %}
group by paid_on
