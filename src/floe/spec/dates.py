"""Find the business date and the partition in the name or path of a dataset. Pure.

`landing/exposure_20260901.csv` is the dataset `landing/exposure_{date}.csv` on 2026-09-01. The
result depends only on the name, never on the event or the clock, because the same name must lead
to the same dataset in whatever order events arrive.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

FIRST_YEAR, LAST_YEAR = 1990, 2079
LONGEST_NAME = 300
# Leaves room for the date and the count in the tag of a version.
LONGEST_PARTITION = 270
MOST_REMEMBERED = 100_000
DATE_MARK = "{date}"
# Separates the keys of a multi-dimensional partition, as in Dagster.
SEPARATOR = "|"
GROUPS = frozenset({"year", "month", "day"})
# A date must be a separate token. Eight digits are not a date after `1.` (a version number) or at
# the start of a UUID.
BUILT_IN = (
    r"(?<![0-9A-Za-z])(?<!\d\.)(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})"
    r"(?![0-9A-Za-z])(?!-[0-9A-Fa-f]{4}-)",
    r"(?<![0-9A-Za-z])(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})(?![0-9A-Za-z])",
    r"(?<![^/])(?P<year>\d{4})/(?P<month>\d{2})/(?P<day>\d{2})(?![^/])",
    r"(?<![^/])year=(?P<year>\d{4})/month=(?P<month>\d{1,2})/day=(?P<day>\d{1,2})(?![^/])",
)
# If there are several dates, the business date is the one with this key, else the last one.
_BUSINESS_KEY = "business_date="
_KEY_AND_VALUE = re.compile(r"(?<![^/])([A-Za-z_][A-Za-z0-9_]*)=([^/]+)(?![^/])")
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True)
class Dated:
    """The parts of a dated name: the name without dates, the date, the partition."""

    name: str
    business_date: date
    partition: str | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """The business date and partition of a path."""

    business_date: date | None = None
    partition: str | None = None


@dataclass(frozen=True, slots=True)
class _DateMatch:
    start: int
    end: int
    day: date
    is_business: bool


class DateRules:
    """The patterns that find dates in names, with a cache of results.

    `patterns` replace the built-in ones. Each is a regular expression with the groups year, month
    and day; an empty list finds nothing.
    """

    def __init__(self, patterns: Sequence[str] | None = None) -> None:
        given = BUILT_IN if patterns is None else patterns
        self._patterns = [re.compile(pattern) for pattern in given]
        # Events refer to the same few thousand datasets again and again.
        self.fold = lru_cache(MOST_REMEMBERED)(self._fold)
        self.read_part = lru_cache(MOST_REMEMBERED)(self._read_part)

    @property
    def patterns(self) -> list[str]:
        """The patterns, to create the same rules in another process."""
        return [pattern.pattern for pattern in self._patterns]

    def _fold(self, name: str) -> Dated | None:
        """Replace the dates in a name; None if it has no date or consists only of dates."""
        matches = self._find(name)
        if not matches:
            return None
        rest = _replace(name, matches)
        if not _LETTER.search(rest.replace(DATE_MARK, "")):
            return None
        folded = _KEY_AND_VALUE.sub(_name_the_key, rest)
        if len(folded) > LONGEST_NAME:
            return None
        return Dated(folded, _business_date(matches), _partition(rest, matches))

    def _read_part(self, path: str) -> Part:
        """Return the business date and partition of a path."""
        matches = self._find(path)
        day = _business_date(matches) if matches else None
        return Part(day, _partition(_replace(path, matches), matches))

    def _find(self, text: str) -> list[_DateMatch]:
        """Return the dates in a text; if two overlap, that of the first pattern."""
        matches: list[_DateMatch] = []
        for pattern in self._patterns:
            for match in pattern.finditer(text):
                day = _plausible(match)
                start, end = match.span()
                if day and all(end <= other.start or start >= other.end for other in matches):
                    is_business = text[:start].endswith(_BUSINESS_KEY)
                    matches.append(_DateMatch(start, end, day, is_business))
        return sorted(matches, key=lambda match: match.start)


DEFAULT_RULES = DateRules()


def below(base: str, path: str) -> str:
    """Return the path below a dataset, without dates in the dataset's own name."""
    base = base.rstrip("/")
    start = path.find(f"{base}/") if base else -1
    return path if start < 0 else path[start + len(base) :]


def location_date(pattern: str, path: str) -> Part | None:
    """Match a path against the `location` of a dataset; None if it does not match.

    A relative location may start at any slash, because events name absolute paths. The path of a
    folder in the location matches too, because Spark reports folders, not files.
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
    """Convert a location with placeholders and wildcards to a regular expression."""
    seen: set[str] = set()
    levels = location.strip("/").split("/")
    # Levels up to the last {business_date} are required; those below are optional.
    needed = max(n for n, level in enumerate(levels) if "{business_date}" in level)
    written = ""
    for index, level in enumerate(levels):
        part = ("/" if index else "") + _level_pattern(level, seen)
        written += part if index <= needed else f"(?:{part}"
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


def _business_date(matches: Sequence[_DateMatch]) -> date:
    return next((match.day for match in matches if match.is_business), matches[-1].day)


def _replace(text: str, matches: Sequence[_DateMatch]) -> str:
    for match in reversed(matches):
        text = f"{text[: match.start]}{DATE_MARK}{text[match.end :]}"
    return text


def _name_the_key(match: re.Match[str]) -> str:
    key, value = match.groups()
    return match[0] if DATE_MARK in value else f"{key}={{{key}}}"


def _partition(rest: str, matches: Sequence[_DateMatch]) -> str | None:
    """Return the partition: other dates than the business date, and key=value folders."""
    day = _business_date(matches) if matches else None
    others = [match.day.isoformat() for match in matches if match.day != day]
    folders = [pair[0] for pair in _KEY_AND_VALUE.finditer(rest) if DATE_MARK not in pair[2]]
    return _shortened(SEPARATOR.join([*dict.fromkeys(others), *folders]))


def _shortened(partition: str) -> str | None:
    """Shorten a partition to fit the catalog; a digest keeps long partitions distinct."""
    if len(partition) > LONGEST_PARTITION:
        digest = hashlib.blake2b(partition.encode(), digest_size=8).hexdigest()
        partition = f"{partition[: LONGEST_PARTITION - 17]}#{digest}"
    return partition or None
