"""Send notifications to the channels of platform.yaml."""

from floe.notify.delivery import Delivery, send
from floe.notify.messages import Message, NotDeliveredError, Severity

__all__ = ["Delivery", "Message", "NotDeliveredError", "Severity", "send"]
