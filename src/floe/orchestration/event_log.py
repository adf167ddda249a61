"""Dagster's event log in SQLite files, over connections that stay open.

Dagster opens a file anew for every event, and whoever closes it last lets SQLite move the event
from its journal into the file. That took fifteen times as long as to write it. Dagster also makes
the tables of a run's file one by one, and they are the same for every run.
"""

import os
import shutil
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import dagster
from dagster import EventLogEntry
from dagster._core.storage.event_log.sqlite.sqlite_event_log import (
    INDEX_SHARD_NAME,
    SqliteEventLogStorage,
    SqliteEventLogStorageWatchdog,
)
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from dagster._serdes import ConfigurableClassData
from sqlalchemy import Connection, Engine, create_engine, event
from watchdog.events import FileSystemEvent
from watchdog.observers import Observer

Heard = Callable[[EventLogEntry, str], Any]

KEPT = 8
"""How many files stay open: the index, and those of the runs that were asked for last."""
TEMPLATE = f"empty-{dagster.__version__}.template"
"""Another Dagster may want other tables."""
JOURNAL = "-wal"


class KeptEventLog(SqliteEventLogStorage):
    """The event log, as dagster.yaml names it."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._engines = _Engines()
        self._tables: set[str] = set()
        super().__init__(base_dir, inst_data)

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Any
    ) -> "KeptEventLog":
        """Open it as dagster.yaml says."""
        return cls(inst_data=inst_data, **config_value)

    def has_table(self, table_name: str) -> bool:
        """Tell whether a table is there; it stays, once it is."""
        if table_name not in self._tables and super().has_table(table_name):
            self._tables.add(table_name)
        return table_name in self._tables

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        with self._db_lock:
            if shard not in self._initialized_dbs:
                self._prepare(shard)
                self._initialized_dbs.add(shard)
            engine = self._engines.get(self.conn_string_for_shard(shard))
            with engine.connect() as connection, connection.begin():
                yield connection

    def _prepare(self, shard: str) -> None:
        """Make the file of a run as a copy of an empty one; one that is there is looked at."""
        path = Path(self.path_for_shard(shard))
        if shard != INDEX_SHARD_NAME and not path.exists() and _copy(self._template(), path):
            return
        self._initdb(self._engines.get(self.conn_string_for_shard(shard)))

    def _template(self) -> Path:
        template = Path(self._base_dir) / TEMPLATE
        if not template.exists():
            draft = template.with_name(f"{TEMPLATE}.{uuid4().hex}")
            engine = create_engine(f"sqlite:///{draft}")
            self._initdb(engine)
            engine.dispose()
            draft.replace(template)
        return template

    def wipe(self) -> None:
        """Remove all, and let go of it first."""
        self._engines.dispose()
        super().wipe()

    def dispose(self) -> None:
        """Let go of everything."""
        super().dispose()
        self._engines.dispose()

    def watch(self, run_id: str, cursor: str | None, callback: Heard) -> None:
        """Tell of a run's events as they come: they come into the journal beside the file."""
        handler = _Watchdog(self, run_id, callback, cursor)
        watched = self._observer().schedule(handler, self._base_dir, recursive=True)
        self._watchers[run_id][callback] = (handler, watched)

    def _observer(self) -> Any:
        observer: Any = self._obs or Observer()
        if self._obs is None:
            observer.start()
            self._obs = observer
        return observer


class _Watchdog(SqliteEventLogStorageWatchdog):
    def __init__(self, log: KeptEventLog, run_id: str, callback: Heard, cursor: str | None) -> None:
        super().__init__(log, run_id, callback, cursor)
        self._patterns = [self._log_path, self._log_path + JOURNAL]

    def on_modified(self, event: FileSystemEvent) -> None:
        self._process_log()


class _Engines:
    """Engines by address, the one that was used last at the end. A child has its own."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, Engine] = OrderedDict()
        self._owner = os.getpid()

    def get(self, address: str) -> Engine:
        if self._owner != os.getpid():
            # Connections of SQLite do not outlive a fork, and are the parent's to close.
            self.dispose(close=False)
            self._owner = os.getpid()
        engine = self._open.pop(address, None) or _open(address)
        self._open[address] = engine
        while len(self._open) > KEPT:
            self._open.popitem(last=False)[1].dispose()
        return engine

    def dispose(self, *, close: bool = True) -> None:
        for engine in self._open.values():
            engine.dispose(close=close)
        self._open.clear()


def _open(address: str) -> Engine:
    engine = create_engine(address, connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS})

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, _: object) -> None:
        # What a process has written outlives it; only a power cut can take the last events along.
        connection.execute("PRAGMA synchronous=NORMAL")

    return engine


def _copy(source: Path, target: Path) -> bool:
    """Copy a file whole; tell whether nobody else was quicker."""
    draft = target.with_name(f"{TEMPLATE}.{uuid4().hex}")
    shutil.copyfile(source, draft)
    try:
        os.link(draft, target)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    return True
