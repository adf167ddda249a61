"""The root of every error that floe raises on purpose. Each subclass owns its words."""


class FloeError(Exception):
    """Something went wrong that the user can act on: what happened, then what to do."""

    exit_code = 1
