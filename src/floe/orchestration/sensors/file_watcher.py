"""file_watcher: start a job once for each file that arrives.

A file has arrived when two listings in a row show the same size and modification time. For local
folders the second listing follows within seconds, otherwise at the next evaluation. The run key is
derived from path, size and time, so a crash or a lost cursor causes no duplicate run, and a
replaced file counts again.

The first evaluation only records existing files, unless `existing: process` is set: enabling a
watcher must not rerun years of old files. Every later file counts, also if it arrives while the
daemon is down.
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
    FoundFile,
    LocalFolder,
    RemoteFolder,
    matches_glob,
    shown,
)
from floe.orchestration.sensors.run_requests import Cause, DeclaredSensor, Starter
from floe.spec.identity import BUSINESS_DATE_TAG
from floe.spec.nearby import suggest
from floe.spec.orchestration import FileWatcherSensor

FILE = "floe/file"
"""The run tag with the file."""
MOST_AT_ONCE = 500
"""Files per evaluation; the next one takes the rest."""
_DATE, _PARTITION = "date", "partition"
_DATE_FORMATS = ("%Y-%m-%d", "%Y%m%d", "%Y_%m_%d", "%Y.%m.%d", "%Y/%m/%d")

Groups = Mapping[str, str]


@dataclass(frozen=True)
class Pattern:
    """Selects files by path and reads groups from their paths."""

    text: str
    regex: bool

    @property
    def deep(self) -> bool:
        """Whether files in subfolders can match."""
        return self.regex or "/" in self.text or "**" in self.text

    def matches(self, path: str) -> bool:
        if self.regex:
            return re.fullmatch(self.text, path) is not None
        return matches_glob(self.text, path)

    def groups(self, path: str) -> Groups:
        """Return the named groups of a regex for a path."""
        match = re.fullmatch(self.text, path) if self.regex else None
        groups = match.groupdict() if match else {}
        return {name: value for name, value in groups.items() if value is not None}


@dataclass(frozen=True)
class Seen:
    """The files of earlier listings. Grows with the number of matching files."""

    done: frozenset[str] = frozenset()
    waiting: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, cursor: str | None) -> "Seen":
        """Parse a cursor. An invalid one is ignored: run keys prevent duplicate runs."""
        try:
            stored = json.loads(cursor or "{}")
            return cls(frozenset(stored.get("done", ())), frozenset(stored.get("waiting", ())))
        except (ValueError, AttributeError, TypeError):
            return cls()

    def has_unseen(self, files: Sequence[FoundFile]) -> bool:
        """Tell whether a listing has files that were not seen before."""
        return any(file.mark not in self.done and file.mark not in self.waiting for file in files)

    def after(self, files: Sequence[FoundFile]) -> "Seen":
        """Return the state after another listing."""
        return Seen(self.done, frozenset(file.mark for file in files) - self.done)

    def dump(self) -> str:
        return json.dumps({"done": sorted(self.done), "waiting": sorted(self.waiting)})


@dataclass(frozen=True)
class Watcher:
    """Lists a folder, and requests a run for each file that has arrived."""

    location: str
    folder: Folder
    pattern: Pattern
    starter: Starter
    interval: int
    ignores_existing: bool

    def evaluate(self, context: SensorEvaluationContext) -> SensorResult:
        """Evaluate the sensor once."""
        if not context.cursor and self.ignores_existing:
            return self._note_existing(context)
        seen = Seen.parse(context.cursor)
        try:
            files = self._list_files()
            if self.folder.recheck_seconds is not None and seen.has_unseen(files):
                time.sleep(self.folder.recheck_seconds)
                seen, files = seen.after(files), self._list_files()
        except OSError as error:
            return self._unreachable(context, error)
        started, requests = self._start(context, _arrived(files, seen))
        marks = {file.mark for file in files}
        done = (seen.done & marks) | started
        cursor = Seen(frozenset(done), frozenset(marks - done)).dump()
        if requests:
            return SensorResult(run_requests=requests, cursor=cursor)
        waiting = len(marks - done)
        return SensorResult(skip_reason=self._skip_reason(len(files), waiting), cursor=cursor)

    def _note_existing(self, context: SensorEvaluationContext) -> SensorResult:
        """Record existing files at the first evaluation, and start nothing."""
        try:
            files = self._list_files()
        except FileNotFoundError as error:
            # Once the folder exists, every file in it is new.
            return self._unreachable(context, error, Seen().dump())
        except OSError as error:
            return self._unreachable(context, error)
        cursor = Seen(frozenset(file.mark for file in files)).dump()
        words = f"First evaluation: ignored {len(files)} existing files in {shown(self.location)}."
        hint = " Use `existing: process` to start a run for each of them." if files else ""
        return SensorResult(skip_reason=words + hint, cursor=cursor)

    def _list_files(self) -> list[FoundFile]:
        files = self.folder.list_files(self.pattern.matches, self.pattern.deep)
        return sorted(files, key=lambda file: file.path)

    def _start(
        self, context: SensorEvaluationContext, files: Sequence[FoundFile]
    ) -> tuple[set[str], list[RunRequest]]:
        started: set[str] = set()
        requests: list[RunRequest] = []
        for file in files:
            file_requests = list(self._requests(context.instance, file))
            if file_requests:
                started.add(file.mark)
                requests += file_requests
            else:
                words = "%s is waiting: the job has no matching partition yet."
                context.log.warning(words, shown(file.url))
        return started, requests

    def _requests(self, instance: DagsterInstance, file: FoundFile) -> Iterator[RunRequest]:
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
        words += f"Next attempt in {self.interval} seconds."
        context.log.warning("%s", words)
        return SensorResult(skip_reason=words, cursor=cursor or context.cursor)

    def _skip_reason(self, files: int, waiting: int) -> str:
        location = shown(self.location)
        if waiting:
            return f"{waiting} new files in {location} start runs when their size stops changing."
        return f"No new files in {location} ({files} match)."


def _arrived(files: Sequence[FoundFile], seen: Seen) -> list[FoundFile]:
    """Return the new files that have not changed since the last listing, by path."""
    fresh = [file for file in files if file.mark in seen.waiting and file.mark not in seen.done]
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
    """Return the partition key in a file's path, or None."""
    if _PARTITION in groups:
        return groups[_PARTITION]
    if isinstance(partitions, MultiPartitionsDefinition):
        keys = {
            dimension.name: _partition(dimension.partitions_def, {_DATE: "", **groups})
            if isinstance(dimension.partitions_def, TimeWindowPartitionsDefinition)
            else groups.get(dimension.name)
            for dimension in partitions.partitions_defs
        }
        known = {name: key for name, key in keys.items() if key}
        return MultiPartitionKey(known) if len(known) == len(keys) else None
    day = _day(groups)
    if day is not None and isinstance(partitions, TimeWindowPartitionsDefinition):
        return day.strftime(partitions.fmt)
    return groups.get(_DATE) or None


def build_file_watcher(declared: DeclaredSensor, sensor: FileWatcherSensor) -> SensorDefinition:
    """Build the sensor; reject a path that can never be read."""
    watcher = Watcher(
        location=sensor.path,
        folder=_folder(declared, sensor.path),
        pattern=Pattern(sensor.pattern, sensor.pattern_type == "regex"),
        starter=declared.starter(sensor.job),
        interval=sensor.poll_interval_seconds,
        ignores_existing=sensor.existing == "ignore",
    )
    return declared.define(sensor, sensor.job, watcher.evaluate)


def _folder(declared: DeclaredSensor, path: str) -> Folder:
    at, loading = (*declared.path, "path"), declared.loading
    if not path.strip():
        hint = "Set the folder to watch, such as landing or s3://bucket/landing."
        raise loading.refusal(at, "is empty", hint)
    protocol, separator, rest = path.partition("://")
    if not separator or protocol == "file":
        folder = loading.site.root / (rest if separator else path)
        if folder.is_file():
            hint = f"Watch {folder.parent.name or '/'}, and select the file with `pattern`."
            raise loading.refusal(at, f"'{path}' is a file, not a folder", hint)
        return LocalFolder(folder)
    _check_protocol(declared, protocol)
    return RemoteFolder(path)


def _check_protocol(declared: DeclaredSensor, protocol: str) -> None:
    from fsspec import (  # type: ignore[import-untyped]
        available_protocols,
        get_filesystem_class,
    )

    at = (*declared.path, "path")
    refuse: Callable[..., Exception] = declared.loading.refusal
    if protocol not in available_protocols():
        hint = suggest(protocol, available_protocols(), "fsspec has no file system of this name.")
        raise refuse(at, f"unknown protocol '{protocol}://'", hint)
    try:
        get_filesystem_class(protocol)
    except ImportError as error:
        raise refuse(
            at, f"'{protocol}://' needs a package that is not installed", f"{error}."
        ) from error
