select
    p.product_id,
    p.product_name as name,
    p.category,
    sum(i.quantity) as sold,
    sum(i.quantity * p.price) as revenue
from {{ ref('stg_order_items') }} i
join {{ ref('stg_orders') }} o on o.order_id = i.order_id
join {{ ref('stg_products') }} p on p.product_id = i.product_id
group by p.product_id, p.product_name, p.category
