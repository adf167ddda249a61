-- Collateral reduces the exposure, never below zero.
select
    g.as_of,
    g.counterparty_id,
    cast(greatest(g.market_value_eur, 0) + g.add_on_eur as decimal(18, 2)) as gross_eur,
    cast(coalesce(c.amount_eur, 0) as decimal(18, 2)) as collateral_eur,
    cast(
        greatest(greatest(g.market_value_eur, 0) + g.add_on_eur - coalesce(c.amount_eur, 0), 0)
        as decimal(18, 2)
    ) as exposure
from gross as g
left join collateral_eur as c on c.counterparty_id = g.counterparty_id
