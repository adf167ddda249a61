"""Send a message to several channels; a failing channel does not stop the others."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from floe.errors import FloeError
from floe.notify import by_apprise, log, mail, webhook
from floe.notify.messages import Masking, Message, Reveal
from floe.spec.platform import Channel, EmailChannel, LogChannel, WebhookChannel


@dataclass(frozen=True)
class Delivery:
    """The result of sending a message to one channel."""

    channel: str
    failure: str | None = None
    """Why it was not delivered, without secrets."""


def send(channels: Mapping[str, Channel], message: Message, reveal: Reveal) -> tuple[Delivery, ...]:
    """Send the message to all channels in parallel; return the result of each.

    Secrets are resolved here and kept only until the message is sent.
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
