"""Rules for calendars: every name is known, and none is built from itself."""

from collections.abc import Iterator

from floe.spec.calendars import built_in_names, is_built_in
from floe.spec.findings import KeyPath, Problem
from floe.spec.rules.cycles import find_cycles
from floe.spec.rules.draft import Draft


def check_calendars(draft: Draft) -> Iterator[Problem]:
    """Find calendars with an unknown base or a base that leads back to them."""
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
        yield Problem(("calendars", cycle[0], "base"), message, "Base one of them on another.")


def _replaced(name: str) -> set[str]:
    """A calendar that takes the name of a built-in one may base on that."""
    return {name} if is_built_in(name) else set()


def unknown_calendar(draft: Draft, path: KeyPath, name: str | None) -> Iterator[Problem]:
    """A calendar must be declared or built in."""
    declared = draft.names("calendars")
    if name is None or name in declared or is_built_in(name):
        return
    known = [*declared, *built_in_names()]
    yield draft.unknown(path, "calendar", name, known, "Declare it under calendars.")
