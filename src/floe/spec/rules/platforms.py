"""Rules for platform.yaml: it offers what the project asks for, and holds no secret."""

import re
from collections.abc import Collection, Iterator
from typing import Any

from floe.spec.findings import KeyPath, Problem
from floe.spec.nearby import suggest
from floe.spec.platform import PlatformSpec
from floe.spec.promises import Sla
from floe.spec.rules.draft import Draft

Asked = tuple[KeyPath, str, str | None]
"""Where a project names something of a platform: the key, the kind of thing, its name."""
_PASSWORD = re.compile(r"://[^/@\s:]+:(?!\$\{)[^@/\s]+@")


def check_platform(tree: dict[str, Any]) -> Iterator[Problem]:
    """Find passwords that stand in addresses."""
    for path, text in _texts(tree, ()):
        if _PASSWORD.search(text):
            hint = "Take it out, and write password: secret://env/NAME."
            yield Problem(path, "holds a password", hint)


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
    """Find profiles, connections and channels that a project names and a platform lacks."""
    spec = draft.spec
    offered: dict[str, Collection[str]] = {
        "compute": platform.compute,
        "storage": platform.storage,
        "catalog": platform.catalog,
        "connection": platform.connections,
        "pool": platform.orchestrator.pools,
        "channel": platform.notifications,
    }
    asked: list[Asked] = [
        (("compute",), "compute", spec.compute),
        (("storage",), "storage", spec.storage),
        (("catalog",), "catalog", spec.catalog),
    ]
    asked += [*_of_datasets(draft), *_of_processes(draft), *_of_notifications(draft)]
    for path, kind, name in asked:
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


def _of_datasets(draft: Draft) -> Iterator[Asked]:
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


def _of_processes(draft: Draft) -> Iterator[Asked]:
    for name, process in draft.spec.processes.items():
        path = ("processes", name)
        yield (*path, "compute"), "compute", process.compute
        yield (*path, "connection"), "connection", process.connection
        yield (*path, "pool"), "pool", process.pool
        yield from _of_sla((*path, "sla"), process.sla)


def _of_notifications(draft: Draft) -> Iterator[Asked]:
    notify = draft.spec.observability.notify
    for event in type(notify).model_fields:
        yield from _channels(("observability", "notify", event), getattr(notify, event))
    for name, sensor in draft.spec.orchestration.sensors.items():
        channels = getattr(sensor, "notify", ())
        yield from _channels(("orchestration", "sensors", name, "notify"), channels)


def _of_sla(path: KeyPath, sla: Sla | None) -> Iterator[Asked]:
    if sla is None:
        return
    yield from _channels((*path, "notify"), sla.notify)
    for index, escalation in enumerate(sla.escalate):
        yield from _channels((*path, "escalate", index, "notify"), escalation.notify)


def _channels(path: KeyPath, names: tuple[str, ...]) -> Iterator[Asked]:
    for index, name in enumerate(names):
        yield (*path, index), "channel", name
