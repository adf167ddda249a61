"""file_watcher: a job starts once for each file that has arrived.

A file has arrived when two looks in a row find it with the same size and the same time. On this
machine the second look follows within seconds, elsewhere when Dagster calls again. The file's state
is then noted, and its run has a key made of that state: a daemon that dies in between, or a cursor
that is lost, doubles nothing; a file that is replaced counts again.

The first look of a sensor notes the files that are there and starts nothing, unless it says
`existing: process`: a watcher that is switched on must not rerun years of old dates. Whatever lands
after that counts, also while the daemon is down.
"""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from dagster import (
    DagsterInstance,
    MultiPartitionKey,
    MultiPartitionsDefinition,
    RunRequest,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    TimeWindowPartitionsDefinition,
)

from floe.clock import is_business_date
from floe.orchestration.sensors.folders import (
    Folder,
    Found,
    LocalFolder,
    RemoteFolder,
    matches_glob,
    shown,
)
from floe.orchestration.sensors.starting import Cause, Declared, Starter
from floe.spec.identity import BUSINESS_DATE_TAG
from floe.spec.nearby import suggest
from floe.spec.orchestration import FileWatcherSensor

FILE = "floe/file"
"""The tag of a run that says which file it is for."""
MOST_AT_ONCE = 500
"""How many files one look starts runs for; the others come with the next."""
_DATE, _PARTITION = "date", "partition"
_DATE_FORMATS = ("%Y-%m-%d", "%Y%m%d", "%Y_%m_%d", "%Y.%m.%d", "%Y/%m/%d")

Groups = Mapping[str, str]


@dataclass(frozen=True)
class Pattern:
    """Which files count, and what their names say."""

    text: str
    regex: bool

    @property
    def deep(self) -> bool:
        """Whether files in folders below can count."""
        return self.regex or "/" in self.text or "**" in self.text

    def matches(self, path: str) -> bool:
        if self.regex:
            return re.fullmatch(self.text, path) is not None
        return matches_glob(self.text, path)

    def groups(self, path: str) -> Groups:
        """Return what the named groups of a regex found in a path."""
        match = re.fullmatch(self.text, path) if self.regex else None
        found = match.groupdict() if match else {}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True)
class Seen:
    """What the looks before saw. It is as long as the folder has files that count."""

    done: frozenset[str] = frozenset()
    waiting: frozenset[str] = frozenset()

    @classmethod
    def read(cls, cursor: str | None) -> "Seen":
        """Read what was kept. One that is not ours is no loss: keys of runs keep them apart."""
        try:
            kept = json.loads(cursor or "{}")
            return cls(frozenset(kept.get("done", ())), frozenset(kept.get("waiting", ())))
        except (ValueError, AttributeError, TypeError):
            return cls()

    def lacks(self, found: Sequence[Found]) -> bool:
        """Tell whether a look has found something new."""
        return any(file.mark not in self.done and file.mark not in self.waiting for file in found)

    def after(self, found: Sequence[Found]) -> "Seen":
        """Return what was seen once another look is over."""
        return Seen(self.done, frozenset(file.mark for file in found) - self.done)

    def written(self) -> str:
        return json.dumps({"done": sorted(self.done), "waiting": sorted(self.waiting)})


@dataclass(frozen=True)
class Watcher:
    """Looks into a folder, and asks for a run for each file that has arrived."""

    location: str
    folder: Folder
    pattern: Pattern
    starter: Starter
    interval: int
    ignores_existing: bool

    def evaluate(self, context: SensorEvaluationContext) -> SensorResult:
        """Look once."""
        if not context.cursor and self.ignores_existing:
            return self._note_existing(context)
        seen = Seen.read(context.cursor)
        try:
            found = self._look()
            if self.folder.settling is not None and seen.lacks(found):
                time.sleep(self.folder.settling)
                seen, found = seen.after(found), self._look()
        except OSError as error:
            return self._unreachable(context, error)
        started, requests = self._start(context, _arrived(found, seen))
        marks = {file.mark for file in found}
        done = (seen.done & marks) | started
        cursor = Seen(frozenset(done), frozenset(marks - done)).written()
        if requests:
            return SensorResult(run_requests=requests, cursor=cursor)
        waiting = len(marks - done)
        return SensorResult(skip_reason=self._nothing(len(found), waiting), cursor=cursor)

    def _note_existing(self, context: SensorEvaluationContext) -> SensorResult:
        """Take the first look: note what is there, and start nothing."""
        try:
            found = self._look()
        except FileNotFoundError as error:
            # Whatever is put there once the folder exists is new.
            return self._unreachable(context, error, Seen().written())
        except OSError as error:
            return self._unreachable(context, error)
        cursor = Seen(frozenset(file.mark for file in found)).written()
        words = f"First look: {len(found)} files in {shown(self.location)} match and start nothing."
        hint = " Use `existing: process` to start a run for each of them." if found else ""
        return SensorResult(skip_reason=words + hint, cursor=cursor)

    def _look(self) -> list[Found]:
        found = self.folder.look(self.pattern.matches, self.pattern.deep)
        return sorted(found, key=lambda file: file.path)

    def _start(
        self, context: SensorEvaluationContext, files: Sequence[Found]
    ) -> tuple[set[str], list[RunRequest]]:
        started: set[str] = set()
        requests: list[RunRequest] = []
        for file in files:
            asked = list(self._requests(context.instance, file))
            if asked:
                started.add(file.mark)
                requests += asked
            else:
                words = "%s waits: its job has no partition for it yet."
                context.log.warning(words, shown(file.url))
        return started, requests

    def _requests(self, instance: DagsterInstance, file: Found) -> Iterator[RunRequest]:
        groups = self.pattern.groups(file.path)
        tags = {FILE: shown(file.url)}
        partition = None
        if self.starter.partitions is None:
            day = _day(groups)
            tags |= {BUSINESS_DATE_TAG: day.isoformat()} if day else {}
        else:
            partition = _partition(self.starter.partitions, groups)
            if partition is not None and not self.starter.has_key(instance, partition):
                return
        key = f"{shown(file.url)} {file.mark}"
        yield from self.starter.requests(instance, Cause(key, partition, tags))

    def _unreachable(
        self, context: SensorEvaluationContext, error: OSError, cursor: str | None = None
    ) -> SensorResult:
        reason = shown(error.strerror or str(error) or type(error).__name__)
        words = f"{shown(self.location)} cannot be read ({reason}). "
        words += f"It is looked at again in {self.interval} seconds."
        context.log.warning("%s", words)
        return SensorResult(skip_reason=words, cursor=cursor or context.cursor)

    def _nothing(self, files: int, waiting: int) -> str:
        place = shown(self.location)
        if waiting:
            return f"{waiting} files in {place} are new: they count once the next look agrees."
        return f"No new file in {place}, which holds {files} that match."


def _arrived(found: Sequence[Found], seen: Seen) -> list[Found]:
    """Return the files that the look before found just as they are, in the order of their names."""
    fresh = [file for file in found if file.mark in seen.waiting and file.mark not in seen.done]
    return fresh[:MOST_AT_ONCE]


def _day(groups: Groups) -> date | None:
    text = groups.get(_DATE, "")
    for form in _DATE_FORMATS:
        try:
            day = datetime.strptime(text, form).date()  # noqa: DTZ007 - a day has no zone
        except ValueError:
            continue
        return day if is_business_date(day) else None
    return None


def _partition(partitions: Any, groups: Groups) -> str | None:
    """Return the partition key that a file's name says; None when it says none."""
    if _PARTITION in groups:
        return groups[_PARTITION]
    if isinstance(partitions, MultiPartitionsDefinition):
        keys = {
            one.name: _partition(one.partitions_def, {_DATE: "", **groups})
            if isinstance(one.partitions_def, TimeWindowPartitionsDefinition)
            else groups.get(one.name)
            for one in partitions.partitions_defs
        }
        known = {name: key for name, key in keys.items() if key}
        return MultiPartitionKey(known) if len(known) == len(keys) else None
    day = _day(groups)
    if day is not None and isinstance(partitions, TimeWindowPartitionsDefinition):
        return day.strftime(partitions.fmt)
    return groups.get(_DATE) or None


def build_file_watcher(declared: Declared, sensor: FileWatcherSensor) -> SensorDefinition:
    """Make the sensor; a path that can never be read refuses to load."""
    watcher = Watcher(
        location=sensor.path,
        folder=_folder(declared, sensor.path),
        pattern=Pattern(sensor.pattern, sensor.pattern_type == "regex"),
        starter=declared.starter(sensor.job),
        interval=sensor.poll_interval_seconds,
        ignores_existing=sensor.existing == "ignore",
    )
    return declared.define(sensor, sensor.job, watcher.evaluate)


def _folder(declared: Declared, path: str) -> Folder:
    at, loading = (*declared.path, "path"), declared.loading
    if not path.strip():
        hint = "Write the folder to watch, such as landing or s3://bucket/landing."
        raise loading.refusal(at, "is empty", hint)
    protocol, separator, rest = path.partition("://")
    if not separator or protocol == "file":
        folder = loading.site.root / (rest if separator else path)
        if folder.is_file():
            hint = f"Watch {folder.parent.name or '/'}, and name the file by `pattern`."
            raise loading.refusal(at, f"'{path}' is a file, not a folder", hint)
        return LocalFolder(folder)
    _check_protocol(declared, protocol)
    return RemoteFolder(path)


def _check_protocol(declared: Declared, protocol: str) -> None:
    from fsspec import (  # type: ignore[import-untyped]
        available_protocols,
        get_filesystem_class,
    )

    at = (*declared.path, "path")
    refuse: Callable[..., Exception] = declared.loading.refusal
    if protocol not in available_protocols():
        hint = suggest(protocol, available_protocols(), "fsspec knows no file system of that name.")
        raise refuse(at, f"'{protocol}://' is not known", hint)
    try:
        get_filesystem_class(protocol)
    except ImportError as error:
        raise refuse(at, f"'{protocol}://' needs a package", f"{error}.") from error
