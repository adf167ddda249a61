"""What a channel raises when a message did not get through."""

from floe.errors import FloeError


class NotDeliveredError(FloeError):
    """A message did not reach its receiver. The words hold no secret."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}.")
