"""Which processes a change starts, for which date, and what the others wait for. Pure."""

from floe.triggers.deciding import Decision, Done, Lack, Ready, State, Waits, decide, decide_all
from floe.triggers.subscriptions import Concern, Later, Subscription, Subscriptions

__all__ = [
    "Concern",
    "Decision",
    "Done",
    "Lack",
    "Later",
    "Ready",
    "State",
    "Subscription",
    "Subscriptions",
    "Waits",
    "decide",
    "decide_all",
]
