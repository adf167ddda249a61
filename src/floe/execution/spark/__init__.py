"""Spark itself: the server that floe starts and watches, and sessions on it."""
