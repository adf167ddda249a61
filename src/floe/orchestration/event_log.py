"""Dagster's event log in SQLite files, with connections that stay open.

Dagster opens the file of a run again for every event, and closing it makes SQLite move the event
from its journal to the file, which takes fifteen times as long as writing it. Dagster also creates
the tables of each run's file one by one; here the file is a copy of an empty one.
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
from sqlalchemy import Connection, Engine, create_engine, event
from watchdog.events import FileSystemEvent
from watchdog.observers import Observer

from floe.orchestration.dagster_internals import (
    INDEX_SHARD_NAME,
    SQLITE_BUSY_TIMEOUT_SECONDS,
    ConfigurableClassData,
    SqliteEventLogStorage,
    SqliteEventLogStorageWatchdog,
)

EventHandler = Callable[[EventLogEntry, str], Any]

MAX_OPEN = 8
"""How many files stay open: the index, and those of the runs used last."""
TEMPLATE = f"empty-{dagster.__version__}.template"
"""Named after the version, because another version may have other tables."""
JOURNAL = "-wal"


class KeptEventLog(SqliteEventLogStorage):
    """The event log storage that dagster.yaml names."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._engines = _Engines()
        self._tables: set[str] = set()
        super().__init__(base_dir, inst_data)

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Any
    ) -> "KeptEventLog":
        """Create the storage from its settings in dagster.yaml."""
        return cls(inst_data=inst_data, **config_value)

    def has_table(self, table_name: str) -> bool:
        """Tell whether a table exists; a positive result is cached."""
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
        """Create a run's file as a copy of an empty one; initialize an existing file."""
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
        """Delete everything, after closing the connections."""
        self._engines.dispose()
        super().wipe()

    def dispose(self) -> None:
        """Close everything."""
        super().dispose()
        self._engines.dispose()

    def watch(self, run_id: str, cursor: str | None, callback: EventHandler) -> None:
        """Call back for new events of a run: they appear in the journal beside its file."""
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
    def __init__(
        self, log: KeptEventLog, run_id: str, callback: EventHandler, cursor: str | None
    ) -> None:
        super().__init__(log, run_id, callback, cursor)
        self._patterns = [self._log_path, self._log_path + JOURNAL]

    def on_modified(self, event: FileSystemEvent) -> None:
        self._process_log()


class _Engines:
    """Engines by URL, least recently used first. A forked child opens its own."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, Engine] = OrderedDict()
        self._owner = os.getpid()

    def get(self, address: str) -> Engine:
        if self._owner != os.getpid():
            # SQLite connections must not be used or closed in a forked child.
            self.dispose(close=False)
            self._owner = os.getpid()
        engine = self._open.pop(address, None) or _open(address)
        self._open[address] = engine
        while len(self._open) > MAX_OPEN:
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
        # Written events survive a crash of the process; only a power cut can lose the last ones.
        connection.execute("PRAGMA synchronous=NORMAL")

    return engine


def _copy(source: Path, target: Path) -> bool:
    """Copy a file atomically; return False if the target exists by then."""
    draft = target.with_name(f"{TEMPLATE}.{uuid4().hex}")
    shutil.copyfile(source, draft)
    try:
        os.link(draft, target)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    return True
