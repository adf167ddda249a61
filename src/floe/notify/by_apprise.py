"""Notifications that apprise sends: Slack, Teams, PagerDuty and whatever else it knows."""

from typing import TYPE_CHECKING

from floe.notify.errors import NotDeliveredError
from floe.notify.masking import Masking
from floe.notify.messages import Message
from floe.spec.platform import AppriseChannel

if TYPE_CHECKING:
    from apprise import Apprise, AppriseResult

TIMEOUT_SECONDS = 20.0
_WHERE = "apprise"
_LOGGERS = ("apprise", "urllib3.connectionpool")
"""Who writes addresses to the log, when it is told to write much."""
_TYPES = {"info": "info", "warning": "warning", "error": "failure"}


def deliver(channel: AppriseChannel, message: Message, masking: Masking) -> None:
    """Hand the message to apprise. It is imported here: it brings a hundred services along."""
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
        raise NotDeliveredError(_WHERE, "its url is none that apprise understands")
    return service


def _words(result: "AppriseResult") -> str:
    said = [entry.message for entry in result.logs() if entry.level in ("WARNING", "ERROR")]
    return " ".join(said[-1].split()).rstrip(".") if said else "the message was not delivered"
