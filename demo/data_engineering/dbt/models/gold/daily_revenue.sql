{{ config(materialized='incremental', incremental_strategy='merge', unique_key='business_date') }}

select o.ordered_on as business_date, count(distinct o.order_id) as orders, sum(i.quantity * p.price) as revenue
from {{ ref('stg_orders') }} o
join {{ ref('stg_order_items') }} i on i.order_id = o.order_id
join {{ ref('stg_products') }} p on p.product_id = i.product_id
{% if var('floe_start', none) %}
where o.ordered_on >= cast('{{ var("floe_start") }}' as date) and o.ordered_on < cast('{{ var("floe_end") }}' as date)
{% endif %}
group by o.ordered_on
