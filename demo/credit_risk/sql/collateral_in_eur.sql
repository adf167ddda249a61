-- The value of each counterparty's collateral in euro, after the haircut.
select
    c.counterparty_id,
    sum(c.amount / r.rate * (1 - c.haircut)) as amount_eur
from collateral as c
join fx as r on r.currency = c.currency
group by c.counterparty_id
