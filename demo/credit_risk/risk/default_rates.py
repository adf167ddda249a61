"""Probabilities of default, smoothed so that a worse rating never looks safer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame

OBSERVED = {
    "AAA": 0.0001,
    "AA": 0.0002,
    "A": 0.0005,
    "BBB": 0.0016,
    "BB": 0.0061,
    "B": 0.0333,
    "CCC": 0.2708,
}
"""Long-run yearly default rates by rating, from best to worst."""


def estimate(counterparties: DataFrame, *, floor: float) -> DataFrame:
    """Return the probability of default of every rating in use."""
    import pandas as pd

    curve = smooth(OBSERVED, floor)
    ratings = sorted(set(counterparties["rating"]), key=list(curve).index)
    return pd.DataFrame({"rating": ratings, "probability": [curve[rating] for rating in ratings]})


def smooth(observed: dict[str, float], floor: float) -> dict[str, float]:
    """Raise each rate to at least the floor and the rates of all better ratings."""
    curve: dict[str, float] = {}
    lowest = floor
    for rating, rate in observed.items():
        lowest = max(lowest, rate)
        curve[rating] = lowest
    return curve
