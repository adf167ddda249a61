"""Spark: the server that floe starts and monitors, and sessions on it."""
