select
    e.as_of,
    e.counterparty_id,
    c.name,
    c.limit_eur,
    e.exposure,
    cast(e.exposure - y.exposure as decimal(18, 2)) as change,
    cast(e.exposure / c.limit_eur as double) as usage,
    case
        when c.limit_eur is null then 'no_limit'
        when e.exposure > c.limit_eur then 'breach'
        when e.exposure > c.limit_eur * :warning_level then 'warning'
        else 'ok'
    end as status
from exposure as e
join counterparties as c on c.counterparty_id = e.counterparty_id
left join yesterday as y on y.counterparty_id = e.counterparty_id
