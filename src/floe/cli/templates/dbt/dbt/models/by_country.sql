select
    country,
    count(*) as payments,
    sum(amount) as amount
from {{ ref('payments') }}
group by country
