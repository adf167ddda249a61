"""Notifications through apprise: Slack, Teams, PagerDuty and many other services."""

from typing import TYPE_CHECKING

from floe.notify.messages import Masking, Message, NotDeliveredError
from floe.spec.platform import AppriseChannel

if TYPE_CHECKING:
    from apprise import Apprise, AppriseResult

TIMEOUT_SECONDS = 20.0
_WHERE = "apprise"
_LOGGERS = ("apprise", "urllib3.connectionpool")
"""Loggers that may write URLs, which can contain secrets."""
_TYPES = {"info": "info", "warning": "warning", "error": "failure"}


def deliver(channel: AppriseChannel, message: Message, masking: Masking) -> None:
    """Send the message through apprise, imported lazily because it is large."""
    with masking.over(_LOGGERS):
        result = _service(masking.reveal(channel.url)).notify(
            body=message.text or message.headline,
            title=message.headline,
            notify_type=_TYPES[message.severity],
            body_format="text",
            timeout=TIMEOUT_SECONDS,
        )
    if not result:
        raise NotDeliveredError(_WHERE, masking.mask(_words(result)))


def _service(url: str) -> "Apprise":
    try:
        from apprise import Apprise
    except ModuleNotFoundError:
        raise NotDeliveredError(_WHERE, "it is not installed; install floe[notify]") from None
    service = Apprise()
    if not service.add(url):
        raise NotDeliveredError(_WHERE, "its url is not a valid apprise url")
    return service


def _words(result: "AppriseResult") -> str:
    messages = [entry.message for entry in result.logs() if entry.level in ("WARNING", "ERROR")]
    return (
        " ".join(messages[-1].split()).rstrip(".") if messages else "the message was not delivered"
    )
