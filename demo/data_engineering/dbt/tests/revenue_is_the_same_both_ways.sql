-- The revenue of all products equals the amount that all customers paid.
select *
from (select sum(revenue) as earned from {{ ref('revenue_by_product') }}) p
cross join (select sum(revenue) as paid from {{ ref('customer_orders') }}) c
where p.earned <> c.paid
