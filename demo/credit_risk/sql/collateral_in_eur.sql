-- What the collateral of a counterparty is worth in euro, after its haircut.
select
    c.counterparty_id,
    sum(c.amount / r.rate * (1 - c.haircut)) as amount_eur
from collateral as c
join fx as r on r.currency = c.currency
group by c.counterparty_id
