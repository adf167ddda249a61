select product_id, trim(name) as product_name, category, price
from {{ source('bronze', 'raw_products') }}
