"""Run backfills in ordered batches that can be stopped and resumed."""
