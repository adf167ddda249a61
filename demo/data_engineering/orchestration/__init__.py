"""The shop's Dagster code."""
