"""dbt: its models, seeds and snapshots are assets, its tests are checks, and it runs in here."""
