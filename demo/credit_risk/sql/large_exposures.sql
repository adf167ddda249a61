select
    u.as_of,
    u.counterparty_id,
    u.name,
    u.exposure,
    u.limit_eur,
    u.usage,
    l.expected_loss
from limit_usage as u
left join expected_loss as l on l.counterparty_id = u.counterparty_id
where u.status in ('warning', 'breach')
order by u.usage desc, u.counterparty_id
