"""Notifications to the log."""

import logging

from floe.notify.messages import Message
from floe.spec.platform import LogChannel

_LOGGER = logging.getLogger("floe.notify")
_LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def deliver(channel: LogChannel, message: Message) -> None:
    """Write the message to the log, at the channel's level."""
    text = "\n".join(part for part in (message.headline, message.text) if part)
    _LOGGER.log(_LEVELS[channel.level], "%s", text)
