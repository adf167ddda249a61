"""What can be wrong with a delivery beside its data."""

from floe.errors import FloeError


class DeliveryIncompleteError(FloeError):
    """A delivery is not all there yet. It may still come, so nothing is rejected."""

    def __init__(self, dataset: str, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The delivery of '{dataset}' is not complete yet: {reason}")
