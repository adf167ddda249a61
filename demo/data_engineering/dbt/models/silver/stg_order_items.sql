select order_item_id, order_id, product_id, quantity
from {{ source('bronze', 'raw_order_items') }}
where quantity > 0
