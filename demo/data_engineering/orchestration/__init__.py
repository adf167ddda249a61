"""What Dagster loads of the shop."""
