"""dbt in Dagster: models, seeds and snapshots are assets, tests are asset checks."""
