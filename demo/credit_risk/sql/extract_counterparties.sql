select
    c.counterparty_id,
    c.name,
    c.country,
    c.sector,
    c.rating,
    l.limit_eur
from counterparty as c
left join credit_limit as l on l.counterparty_id = c.counterparty_id
where c.active = 1
