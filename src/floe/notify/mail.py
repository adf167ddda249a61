"""Notifications that are sent by e-mail. The standard library alone."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid
from smtplib import (
    SMTP,
    SMTP_SSL,
    SMTPAuthenticationError,
    SMTPException,
    SMTPRecipientsRefused,
    SMTPResponseException,
)

from floe import clock
from floe.notify.errors import NotDeliveredError
from floe.notify.masking import Masking
from floe.notify.messages import Message
from floe.spec.platform import EmailChannel

TIMEOUT_SECONDS = 15.0
_ALWAYS_ENCRYPTED = 465
"""On this port a connection is encrypted from its first byte; on others it becomes so."""


def deliver(channel: EmailChannel, message: Message, masking: Masking) -> None:
    """Send the message to everyone whom the channel names."""
    where = f"The mail server {channel.host}:{channel.port}"
    password = masking.reveal(channel.password) if channel.password else None
    try:
        with _connected(channel) as server:
            if channel.user is not None:
                server.login(channel.user, password or "")
            refused = server.send_message(_letter(channel, message))
    except (OSError, SMTPException, ValueError) as error:
        raise NotDeliveredError(where, masking.mask(_words(error))) from None
    if refused:
        raise NotDeliveredError(where, f"it refused {', '.join(sorted(refused))}")


@contextmanager
def _connected(channel: EmailChannel) -> Iterator[SMTP]:
    context = ssl.create_default_context()
    address = (channel.host, channel.port)
    if channel.tls and channel.port == _ALWAYS_ENCRYPTED:
        with SMTP_SSL(*address, timeout=TIMEOUT_SECONDS, context=context) as server:
            yield server
        return
    with SMTP(*address, timeout=TIMEOUT_SECONDS) as server:
        if channel.tls:
            server.starttls(context=context)
        yield server


def _letter(channel: EmailChannel, message: Message) -> EmailMessage:
    letter = EmailMessage()
    letter["Subject"] = message.headline
    letter["From"] = channel.sender
    letter["To"] = ", ".join(channel.to)
    letter["Date"] = format_datetime(clock.now())
    letter["Message-ID"] = make_msgid(domain=channel.sender.partition("@")[2])
    letter.set_content(message.text or message.headline)
    return letter


def _words(error: Exception) -> str:
    """Say what went wrong. A server's answer to a log-in is left out: it may repeat what it got."""
    match error:
        case SMTPAuthenticationError():
            return f"it does not accept the user or the password ({error.smtp_code})"
        case SMTPRecipientsRefused():
            return f"it refused {', '.join(sorted(error.recipients))}"
        case SMTPResponseException():
            said = error.smtp_error
            text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
            return f"it answers {error.smtp_code} {' '.join(text.split())}"
        case OSError() if error.strerror:
            return error.strerror
        case _:
            return str(error).rstrip(".") or type(error).__name__
