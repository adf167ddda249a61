"""Rules for calendars, governance and platform.yaml: profiles exist, no passwords."""

import re
from collections.abc import Collection, Iterator
from typing import Any

from floe.spec.calendars import is_built_in
from floe.spec.findings import KeyPath, Problem
from floe.spec.governance import Sla
from floe.spec.nearby import suggest
from floe.spec.platform import PlatformSpec
from floe.spec.rules.draft import Draft, find_cycles, unknown_calendar

PlatformReference = tuple[KeyPath, str, str | None]
"""A reference from a project to its platform: key, kind and name."""
_PASSWORD = re.compile(r"://[^/@\s:]+:(?!\$\{)[^@/\s]+@")


def check_calendars(draft: Draft) -> Iterator[Problem]:
    """Find calendars with an unknown or circular base."""
    calendars = draft.spec.calendars
    yield from unknown_calendar(draft, ("calendar",), draft.spec.calendar)
    for name, calendar in calendars.items():
        for index, base in enumerate(calendar.base):
            at: KeyPath = ("calendars", name, "base", index)
            yield from unknown_calendar(draft, at, base)
        both = set(calendar.add) & set(calendar.remove)
        for day in sorted(both):
            message = f"{day} is both added and removed"
            yield Problem(("calendars", name, "add"), message, "Keep one of the two.")
    graph = {
        name: {base for base in calendar.base if base in calendars} - _replaced(name)
        for name, calendar in calendars.items()
    }
    for cycle in find_cycles(graph):
        message = f"the calendar is its own base: {' → '.join([*cycle, cycle[0]])}"
        yield Problem(
            ("calendars", cycle[0], "base"), message, "Base one of them on another calendar."
        )


def _replaced(name: str) -> set[str]:
    """A calendar may be based on the built-in calendar it replaces."""
    return {name} if is_built_in(name) else set()


def check_governance(draft: Draft) -> Iterator[Problem]:
    """Find policies without valid classifications, because they would protect nothing."""
    known = draft.spec.governance.classifications
    for name, policy in draft.spec.governance.policies.items():
        path = ("governance", "policies", name, "classifications")
        if not policy.classifications and draft.written(path[:-1]).get(path[-1]) is None:
            hint = f"Choose from: {', '.join(known)}."
            yield Problem(path, "is missing; the policy has no effect", hint, at_key=True)
        for index, word in enumerate(policy.classifications):
            if word not in known:
                message = f"no classification named '{word}'"
                yield Problem((*path, index), message, suggest(word, known))


def check_platform(tree: dict[str, Any]) -> Iterator[Problem]:
    """Find passwords in URLs."""
    for path, text in _texts(tree, ()):
        if _PASSWORD.search(text):
            hint = "Remove it, and set password: secret://env/NAME."
            yield Problem(path, "contains a password", hint)


def _texts(tree: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(tree, str):
        yield path, tree
    elif isinstance(tree, dict):
        for key, value in tree.items():
            yield from _texts(value, (*path, key))
    elif isinstance(tree, list):
        for index, item in enumerate(tree):
            yield from _texts(item, (*path, index))


def check_profiles(draft: Draft, platform: PlatformSpec, file: str) -> Iterator[Problem]:
    """Find profiles, connections and channels that the platform does not declare."""
    spec = draft.spec
    offered: dict[str, Collection[str]] = {
        "compute": platform.compute,
        "storage": platform.storage,
        "catalog": platform.catalog,
        "connection": platform.connections,
        "pool": platform.orchestrator.pools,
        "channel": platform.notifications,
    }
    references: list[PlatformReference] = [
        (("compute",), "compute", spec.compute),
        (("storage",), "storage", spec.storage),
        (("catalog",), "catalog", spec.catalog),
    ]
    references += [*_of_datasets(draft), *_of_processes(draft), *_of_notifications(draft)]
    for path, kind, name in references:
        if name is not None and name not in offered[kind]:
            yield _lacking(path, kind, name, offered[kind], file)


def _lacking(path: KeyPath, kind: str, name: str, offered: Collection[str], file: str) -> Problem:
    section = {
        "channel": "notifications",
        "connection": "connections",
        "pool": "orchestrator.pools",
    }
    hint = suggest(name, offered, f"Declare it there under {section.get(kind, kind)}.")
    noun = f"{kind} profile" if kind in ("compute", "storage", "catalog") else kind
    return Problem(path, f"{file} has no {noun} named '{name}'", hint)


def _of_datasets(draft: Draft) -> Iterator[PlatformReference]:
    for name, dataset in draft.spec.datasets.items():
        path = ("datasets", name)
        if dataset.storage is not None:
            yield (*path, "storage"), "storage", dataset.storage
        connection = dataset.options.get("connection") if dataset.format == "jdbc" else None
        if isinstance(connection, str):
            yield (*path, "options", "connection"), "connection", connection
        yield from _of_sla((*path, "sla"), dataset.sla)
        if dataset.feed is not None:
            for index, consumer in enumerate(dataset.feed.consumers):
                at = (*path, "feed", "consumers", index, "notify")
                yield from _channels(at, consumer.notify)


def _of_processes(draft: Draft) -> Iterator[PlatformReference]:
    for name, process in draft.spec.processes.items():
        path = ("processes", name)
        yield (*path, "compute"), "compute", process.compute
        yield (*path, "connection"), "connection", process.connection
        yield (*path, "pool"), "pool", process.pool
        yield from _of_sla((*path, "sla"), process.sla)


def _of_notifications(draft: Draft) -> Iterator[PlatformReference]:
    notify = draft.spec.observability.notify
    for event in type(notify).model_fields:
        yield from _channels(("observability", "notify", event), getattr(notify, event))
    for name, sensor in draft.spec.orchestration.sensors.items():
        channels = getattr(sensor, "notify", ())
        yield from _channels(("orchestration", "sensors", name, "notify"), channels)


def _of_sla(path: KeyPath, sla: Sla | None) -> Iterator[PlatformReference]:
    if sla is None:
        return
    yield from _channels((*path, "notify"), sla.notify)
    for index, escalation in enumerate(sla.escalate):
        yield from _channels((*path, "escalate", index, "notify"), escalation.notify)


def _channels(path: KeyPath, names: tuple[str, ...]) -> Iterator[PlatformReference]:
    for index, name in enumerate(names):
        yield (*path, index), "channel", name
