select order_id, customer_id, status, business_date as ordered_on
from {{ source('bronze', 'raw_orders') }}
where status <> 'cancelled'
