-- Each input is a view, named by its alias in floe.yaml.
select
    country,
    count(*) as payments,
    sum(amount) as amount
from payments
group by country
