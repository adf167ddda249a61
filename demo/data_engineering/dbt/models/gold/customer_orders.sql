select
    c.customer_id,
    c.customer_name,
    c.country,
    count(distinct o.order_id) as orders,
    coalesce(sum(i.quantity * p.price), 0) as revenue
from {{ ref('stg_customers') }} c
left join {{ ref('stg_orders') }} o on o.customer_id = c.customer_id
left join {{ ref('stg_order_items') }} i on i.order_id = o.order_id
left join {{ ref('stg_products') }} p on p.product_id = i.product_id
group by c.customer_id, c.customer_name, c.country
