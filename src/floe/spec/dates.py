"""Find the business date and the partition in the name or path of a dataset. Pure.

`landing/exposure_20260901.csv` is the dataset `landing/exposure_{date}.csv` on 2026-09-01. What is
found depends on the name alone, never on the event or on the clock: the same name must lead to the
same dataset in whatever order events arrive.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

FIRST_YEAR, LAST_YEAR = 1990, 2079
LONGEST_NAME = 300
# With the date before it and a number after it, it is the tag of a version.
LONGEST_PARTITION = 270
MOST_REMEMBERED = 100_000
DATE_MARK = "{date}"
# Between the keys of a partition, as Dagster writes them.
SEPARATOR = "|"
GROUPS = frozenset({"year", "month", "day"})
# A date is a token of its own. Eight digits are none after `1.` (a version number), nor at the
# start of a UUID.
BUILT_IN = (
    r"(?<![0-9A-Za-z])(?<!\d\.)(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})"
    r"(?![0-9A-Za-z])(?!-[0-9A-Fa-f]{4}-)",
    r"(?<![0-9A-Za-z])(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})(?![0-9A-Za-z])",
    r"(?<![^/])(?P<year>\d{4})/(?P<month>\d{2})/(?P<day>\d{2})(?![^/])",
    r"(?<![^/])year=(?P<year>\d{4})/month=(?P<month>\d{1,2})/day=(?P<day>\d{1,2})(?![^/])",
)
# Of several dates the one under this key is the business date; without it, the last one is.
_BUSINESS_KEY = "business_date="
_KEY_AND_VALUE = re.compile(r"(?<![^/])([A-Za-z_][A-Za-z0-9_]*)=([^/]+)(?![^/])")
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True)
class Dated:
    """What a dated name says: the dataset's name without its dates, the date, the partition."""

    name: str
    business_date: date
    partition: str | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a dataset that a location holds."""

    business_date: date | None = None
    partition: str | None = None


@dataclass(frozen=True, slots=True)
class _Found:
    start: int
    end: int
    day: date
    is_business: bool


class DateRules:
    """The patterns that find dates, with what they found in the names seen so far.

    `patterns` replace the built-in ones. Each is a regular expression with the groups year, month
    and day; an empty list finds nothing.
    """

    def __init__(self, patterns: Sequence[str] | None = None) -> None:
        given = BUILT_IN if patterns is None else patterns
        self._patterns = [re.compile(pattern) for pattern in given]
        # A night names the same few thousand datasets over and over.
        self.fold = lru_cache(MOST_REMEMBERED)(self._fold)
        self.read_part = lru_cache(MOST_REMEMBERED)(self._read_part)

    @property
    def patterns(self) -> list[str]:
        """The patterns, for another process to make the same rules from."""
        return [pattern.pattern for pattern in self._patterns]

    def _fold(self, name: str) -> Dated | None:
        """Take the dates out of a name; None if it has none, or would be nothing without."""
        found = self._find(name)
        if not found:
            return None
        rest = _replace(name, found)
        if not _LETTER.search(rest.replace(DATE_MARK, "")):
            return None
        folded = _KEY_AND_VALUE.sub(_name_the_key, rest)
        if len(folded) > LONGEST_NAME:
            return None
        return Dated(folded, _business_date(found), _partition(rest, found))

    def _read_part(self, path: str) -> Part:
        """Read which date and partition a path leads to."""
        found = self._find(path)
        day = _business_date(found) if found else None
        return Part(day, _partition(_replace(path, found), found))

    def _find(self, text: str) -> list[_Found]:
        """Return the dates of a text in their order; where two overlap, the first rule's."""
        found: list[_Found] = []
        for pattern in self._patterns:
            for match in pattern.finditer(text):
                day = _plausible(match)
                start, end = match.span()
                if day and all(end <= other.start or start >= other.end for other in found):
                    is_business = text[:start].endswith(_BUSINESS_KEY)
                    found.append(_Found(start, end, day, is_business))
        return sorted(found, key=lambda one: one.start)


DEFAULT_RULES = DateRules()


def below(base: str, path: str) -> str:
    """Return the path below a dataset: a date in the dataset's own name is not the subset's."""
    base = base.rstrip("/")
    start = path.find(f"{base}/") if base else -1
    return path if start < 0 else path[start + len(base) :]


def location_date(pattern: str, path: str) -> Part | None:
    """Read a path by the `location` that a dataset declares; None if it does not match.

    A relative location starts anywhere at a slash, because events name absolute paths. A path that
    leads to a folder of the location matches too: Spark names folders, not files.
    """
    match = _location_pattern(pattern).search(path.rstrip("/"))
    if match is None:
        return None
    try:
        day = date.fromisoformat(match["business_date"])
    except ValueError:
        return None
    partition = match.groupdict().get("partition")
    return Part(day, None if partition == day.isoformat() else _shortened(partition or ""))


@lru_cache(10_000)
def _location_pattern(location: str) -> re.Pattern[str]:
    """Turn a location with placeholders and wildcards into a regular expression."""
    seen: set[str] = set()
    levels = location.strip("/").split("/")
    # The last level that has a placeholder must be there; those below it may be.
    needed = max(n for n, level in enumerate(levels) if "{business_date}" in level)
    written = ""
    for number, level in enumerate(levels):
        part = ("/" if number else "") + _level_pattern(level, seen)
        written += part if number <= needed else f"(?:{part}"
    return re.compile(rf"(?:^|/){written}{')?' * (len(levels) - 1 - needed)}$")


def _level_pattern(level: str, seen: set[str]) -> str:
    if level == "**":
        return ".*"
    written = ""
    for piece in re.split(r"(\{\w+\}|\*|\?|\[[^\]]+\])", level):
        if piece.startswith("{"):
            name = piece[1:-1]
            repeated = name in seen
            seen.add(name)
            written += f"(?P={name})" if repeated else f"(?P<{name}>[^/]+)"
        elif piece in ("*", "?"):
            written += "[^/]*" if piece == "*" else "[^/]"
        elif piece.startswith("["):
            written += "[^" + piece[2:] if piece.startswith("[!") else piece
        else:
            written += re.escape(piece)
    return written


def _plausible(match: re.Match[str]) -> date | None:
    year, month, day = (int(match[name] or 0) for name in ("year", "month", "day"))
    if not FIRST_YEAR <= year <= LAST_YEAR:
        return None
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _business_date(found: Sequence[_Found]) -> date:
    return next((one.day for one in found if one.is_business), found[-1].day)


def _replace(text: str, found: Sequence[_Found]) -> str:
    for one in reversed(found):
        text = f"{text[: one.start]}{DATE_MARK}{text[one.end :]}"
    return text


def _name_the_key(match: re.Match[str]) -> str:
    key, value = match.groups()
    return match[0] if DATE_MARK in value else f"{key}={{{key}}}"


def _partition(rest: str, found: Sequence[_Found]) -> str | None:
    """The partition beside the business date: further dates, and folders such as region=EU."""
    day = _business_date(found) if found else None
    others = [one.day.isoformat() for one in found if one.day != day]
    folders = [one[0] for one in _KEY_AND_VALUE.finditer(rest) if DATE_MARK not in one[2]]
    return _shortened(SEPARATOR.join([*dict.fromkeys(others), *folders]))


def _shortened(partition: str) -> str | None:
    """Return a partition that fits into the catalog; a digest keeps long ones apart."""
    if len(partition) > LONGEST_PARTITION:
        digest = hashlib.blake2b(partition.encode(), digest_size=8).hexdigest()
        partition = f"{partition[: LONGEST_PARTITION - 17]}#{digest}"
    return partition or None
