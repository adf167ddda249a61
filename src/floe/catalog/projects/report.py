"""Report what registering a project changed, one line per change."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from floe.catalog.audit import Difference

LONGEST_VALUE = 60
# Columns that repeat a key of the declaration under another name or as an id.
REPEATED = frozenset(
    {
        "checks", "default_format", "default_sla_id", "name", "needs_validation", "process_key",
        "project_id", "schema_hash", "sla_id", "tags", "technology", "trigger_mode",
    }
)  # fmt: skip
OWNER_KEYS = {"owner_team": "owner.team", "team": "owner.team", "owner_email": "owner.email"}


@dataclass(frozen=True)
class ReportLine:
    """One change: `raw.prices: due 06:15 next day → 04:04 same day`."""

    action: str
    kind: str
    name: str
    detail: str = ""

    def __str__(self) -> str:
        if self.kind == "edges":
            return f"{self.action} {self.name} edge{'' if self.name == '1' else 's'}"
        if self.action == "updated" and self.detail:
            return f"{self.name}: {self.detail}"
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.action} {self.kind} {self.name}{detail}"


@dataclass
class Report:
    """All changes; empty if the catalog already matched the project."""

    lines: list[ReportLine] = field(default_factory=list)

    def add(self, action: str, kind: str, name: str, details: Iterable[str] = ()) -> None:
        self.lines.append(ReportLine(action, kind, name, "; ".join(details)))

    @property
    def empty(self) -> bool:
        return not self.lines


def describe_changes(change: Difference) -> list[str]:
    """Describe what changed in a declaration, key by key: `category prices → rates`."""
    before, after = dict(change.before), dict(change.after)
    lines = []
    if "name" in after:
        lines.append(f"renamed from {before['name']}")
    old, new = before.pop("declaration_json", None), after.pop("declaration_json", None)
    declared = list(_differences(_readable(old or {}), _readable(new or {}), ""))
    lines += [line for _, line in declared]
    keys = {key for key, _ in declared}
    for column, value in after.items():
        key = OWNER_KEYS.get(column, column)
        if key not in keys and column not in REPEATED:
            lines.append(f"{key} {_show(before.get(column))} → {_show(value)}")
    # Tags, checks and ids that changed although the declaration did not.
    return lines or sorted(after)


def _readable(declaration: Mapping[str, Any]) -> dict[str, Any]:
    """Write the due time of an SLA in words: `06:15 next day`."""
    plain = dict(declaration)
    sla = plain.get("sla")
    if not isinstance(sla, dict) or not sla.get("due"):
        return plain
    days = sla.get("day_offset", 0)
    day = {0: "same day", 1: "next day"}.get(days, f"{days:+} days")
    due = str(sla["due"])
    time = due.removesuffix(":00") if due.count(":") > 1 else due
    rest = {key: value for key, value in sla.items() if key not in ("due", "day_offset")}
    return {**plain, "due": f"{time} {day}", "sla": rest}


def _differences(old: Any, new: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield the path of each changed key, with a description."""
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            inner = f"{path}.{key}" if path else str(key)
            yield from _differences(old.get(key), new.get(key), inner)
    elif (olds := _by_name(old)) is not None and (news := _by_name(new)) is not None:
        yield from _item_differences(olds, news, path)
    else:
        yield path, f"{path} {_show(old)} → {_show(new)}"


def _item_differences(
    olds: Mapping[str, Any], news: Mapping[str, Any], path: str
) -> Iterator[tuple[str, str]]:
    noun = path.removesuffix("s")
    for name in [*olds, *(name for name in news if name not in olds)]:
        if name not in news:
            yield f"{path}.{name}", f"{noun} {name} removed"
        elif name not in olds:
            yield f"{path}.{name}", f"{noun} {name} added"
        else:
            yield from _differences(olds[name], news[name], f"{noun} {name}")


def _by_name(value: Any) -> dict[str, Any] | None:
    """Return a list of mappings by name, or None for any other value."""
    if value is None:
        return {}
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        return None
    named = {_item_name(item): item for item in value}
    return named if len(named) == len(value) else None


def _item_name(item: Mapping[str, Any]) -> str:
    if "name" in item:
        return str(item["name"])
    return _show(", ".join(str(part) for part in item.values()))


def _show(value: Any) -> str:
    if value is None or value in ({}, []):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        text = ", ".join(f"{key}: {item}" for key, item in value.items())
    else:
        text = " ".join(str(value).split())
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"
