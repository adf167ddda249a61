"""Making a backfill: in batches, in order, so that it can be stopped and taken up again."""
