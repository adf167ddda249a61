-- One row for each position, in euro. Without a rate for its currency the amount is null,
-- and the check on the result rejects the version.
select
    p.as_of,
    p.position_id,
    p.counterparty_id,
    p.product,
    cast(p.notional / r.rate as decimal(18, 2)) as notional_eur,
    cast(p.market_value / r.rate as decimal(18, 2)) as market_value_eur
from positions as p
left join fx as r on r.currency = p.currency
