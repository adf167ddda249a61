"""Tell people: messages go to the channels of platform.yaml."""

from floe.notify.errors import NotDeliveredError
from floe.notify.messages import Message, Severity
from floe.notify.sending import Delivery, send

__all__ = ["Delivery", "Message", "NotDeliveredError", "Severity", "send"]
