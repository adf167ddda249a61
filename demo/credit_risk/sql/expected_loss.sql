select
    e.as_of,
    e.counterparty_id,
    c.rating,
    e.exposure,
    cast(e.exposure * d.probability * :loss_given_default as decimal(18, 2)) as expected_loss
from exposure as e
join counterparties as c on c.counterparty_id = e.counterparty_id
join default_rates as d on d.rating = c.rating
