"""The project's Python functions."""

import pandas as pd


def by_country(payments: pd.DataFrame) -> pd.DataFrame:
    """Add up the payments of each country. Arguments are named like the inputs in floe.yaml."""
    groups = payments.groupby("country", as_index=False)
    return groups.agg(payments=("payment_id", "count"), amount=("amount", "sum"))
