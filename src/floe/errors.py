"""The base class of floe's errors. Each subclass builds its own message."""


class FloeError(Exception):
    """An error that the user can fix: the message says what happened and what to do."""

    exit_code = 1
