-- Today's value plus an add-on by product for future growth.
select
    as_of,
    counterparty_id,
    sum(market_value_eur) as market_value_eur,
    sum(
        notional_eur * case product
            when 'swap' then 0.015
            when 'forward' then 0.01
            else 0
        end
    ) as add_on_eur
from positions_eur
group by as_of, counterparty_id
