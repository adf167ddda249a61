select customer_id, trim(name) as customer_name, upper(country) as country, business_date as signed_up_on
from {{ source('bronze', 'raw_customers') }}
