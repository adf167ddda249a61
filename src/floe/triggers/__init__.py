"""Decide which processes to start and what the others wait for. Pure."""

from floe.triggers.decisions import (
    Candidate,
    Decision,
    Done,
    InputHistory,
    LaterDates,
    MissingInput,
    Ready,
    Subscription,
    Subscriptions,
    Waiting,
    decide,
    decide_all,
)

__all__ = [
    "Candidate",
    "Decision",
    "Done",
    "InputHistory",
    "LaterDates",
    "MissingInput",
    "Ready",
    "Subscription",
    "Subscriptions",
    "Waiting",
    "decide",
    "decide_all",
]
