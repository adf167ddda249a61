"""Send a message to channels, each for itself: one that fails stops no other."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from floe.errors import FloeError
from floe.notify import by_apprise, log, mail, webhook
from floe.notify.masking import Masking, Reveal
from floe.notify.messages import Message
from floe.spec.platform import Channel, EmailChannel, LogChannel, WebhookChannel


@dataclass(frozen=True)
class Delivery:
    """What became of a message on one channel."""

    channel: str
    failure: str | None = None
    """Why it did not get through; it holds no secret."""


def send(channels: Mapping[str, Channel], message: Message, reveal: Reveal) -> tuple[Delivery, ...]:
    """Send the message to all channels at once, and tell for each what became of it.

    Secrets are fetched here, by reference, and forgotten with the message.
    """
    if not channels:
        return ()
    with ThreadPoolExecutor(len(channels), "notify") as threads:
        attempt = partial(_try, message, reveal)
        return tuple(threads.map(attempt, channels.keys(), channels.values()))


def _try(message: Message, reveal: Reveal, name: str, channel: Channel) -> Delivery:
    try:
        _deliver(channel, message, Masking(reveal))
    except FloeError as error:
        return Delivery(name, str(error))
    return Delivery(name)


def _deliver(channel: Channel, message: Message, masking: Masking) -> None:
    match channel:
        case LogChannel():
            log.deliver(channel, message)
        case WebhookChannel():
            webhook.deliver(channel, message, masking)
        case EmailChannel():
            mail.deliver(channel, message, masking)
        case _:
            by_apprise.deliver(channel, message, masking)
