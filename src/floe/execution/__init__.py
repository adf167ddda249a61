"""The only place that speaks Spark."""
