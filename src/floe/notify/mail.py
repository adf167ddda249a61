"""Notifications by e-mail. Standard library only."""

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
from floe.notify.messages import Masking, Message, NotDeliveredError
from floe.spec.platform import EmailChannel

TIMEOUT_SECONDS = 15.0
_ALWAYS_ENCRYPTED = 465
"""On this port TLS starts with the connection; on others STARTTLS is used."""


def deliver(channel: EmailChannel, message: Message, masking: Masking) -> None:
    """Send the message to all recipients of the channel."""
    where = f"The mail server {channel.host}:{channel.port}"
    password = masking.reveal(channel.password) if channel.password else None
    try:
        with _connected(channel) as server:
            if channel.user is not None:
                server.login(channel.user, password or "")
            refused = server.send_message(_compose(channel, message))
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


def _compose(channel: EmailChannel, message: Message) -> EmailMessage:
    email = EmailMessage()
    email["Subject"] = message.headline
    email["From"] = channel.sender
    email["To"] = ", ".join(channel.to)
    email["Date"] = format_datetime(clock.now())
    email["Message-ID"] = make_msgid(domain=channel.sender.partition("@")[2])
    email.set_content(message.text or message.headline)
    return email


def _words(error: Exception) -> str:
    """Describe an error, without a login reply: it may repeat the password."""
    match error:
        case SMTPAuthenticationError():
            return f"it rejected the user or password ({error.smtp_code})"
        case SMTPRecipientsRefused():
            return f"it refused {', '.join(sorted(error.recipients))}"
        case SMTPResponseException():
            reply = error.smtp_error
            text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else str(reply)
            return f"it replied {error.smtp_code} {' '.join(text.split())}"
        case OSError() if error.strerror:
            return error.strerror
        case _:
            return str(error).rstrip(".") or type(error).__name__
