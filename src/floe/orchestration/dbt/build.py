"""Run one `dbt build` of exactly a step's nodes and report results while it runs."""

import threading
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Queue
from typing import TYPE_CHECKING, Any

from floe.errors import FloeError
from floe.execution.spark.errors import JVM
from floe.orchestration.dbt.commands import ONE_AT_A_TIME, invoke, parse, reason
from floe.orchestration.dbt.dbt_project import DbtProject
from floe.orchestration.dbt.manifest import apply_names, fingerprint
from floe.orchestration.dbt.nodes import Manifest as Names
from floe.orchestration.dbt.seed_values import Sessions, bound_in

if TYPE_CHECKING:
    from pathlib import Path

    from dbt.contracts.graph.manifest import Manifest
    from pyspark.sql.connect.session import SparkSession

FINISHED, STARTING = "NodeFinished", "LogStartLine"
LOUD = ("warn", "error")

_parsed: "dict[Path, tuple[str, Manifest]]" = {}
"""Projects that this process has parsed, with the fingerprints of their sources."""


class StoppedError(FloeError):
    """dbt reached a node after the build was stopped."""

    def __init__(self) -> None:
        super().__init__("The run was stopped.")


@dataclass(frozen=True)
class NodeResult:
    """How a node finished."""

    unique_id: str
    status: str
    message: str
    sql: str | None
    failures: int
    started_at: str
    ended_at: str
    seconds: float


@dataclass(frozen=True)
class Remark:
    """A warning or an error that dbt logged."""

    level: str
    text: str


@dataclass(frozen=True)
class End:
    """dbt has finished; with a reason if it failed."""

    reason: str | None


Event = NodeResult | Remark | End


class Build:
    """A `dbt build` in its own thread."""

    def __init__(
        self,
        project: DbtProject,
        nodes: Set[str] | None,
        variables: Mapping[str, Any],
        sessions: Sessions,
        names: Names,
    ) -> None:
        self._project = project
        self._names = names
        self._nodes = nodes
        self._variables = variables
        self._sessions = sessions
        self._events: Queue[Event] = Queue()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dbt", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def events(self) -> Iterator[Event]:
        """Yield results and remarks until dbt has finished."""
        while True:
            event = self._events.get()
            yield event
            if isinstance(event, End):
                return

    def stop(self) -> None:
        """Start no more nodes. Whoever owns the session interrupts those that run."""
        self._stopping.set()

    def ended(self, seconds: float) -> bool:
        """Wait for the end, at most this long; tell whether it has come."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        failed: str | None = "it ended without a result"
        try:
            failed = self._build()
        except FloeError as error:
            failed = str(error)
        finally:
            self._events.put(End(failed))

    def _build(self) -> str | None:
        # dbt asks for Hive with every statement; Spark warns each time that there is none.
        warnings.filterwarnings("ignore", message=".*spark.sql.catalogImplementation")
        with ONE_AT_A_TIME, bound_in(self._session_for_values):
            manifest = parsed(self._project)
            apply_names(manifest, self._names)
            with marked(manifest, self._nodes) as selection:
                result = invoke(
                    self._project,
                    ["build", *selection, "--no-write-json"],
                    variables=self._variables,
                    manifest=manifest,
                    callback=lambda message: self._handle(manifest, message),
                )
        return None if result.success or result.exception is None else reason(result)

    def _session_for_values(self) -> "SparkSession":
        """Return the session for the next batch of a seed, unless the build was stopped."""
        if self._stopping.is_set():
            raise StoppedError
        return self._sessions()

    def _handle(self, manifest: "Manifest", message: Any) -> None:
        name = message.info.name
        if name == FINISHED:
            self._events.put(_result(manifest, message.data))
        elif name == STARTING and self._stopping.is_set():
            # dbt treats an error raised here as the node's own and continues with the next node.
            raise StoppedError
        elif message.info.level in LOUD:
            self._events.put(Remark(message.info.level, _without_jvm(message.info.msg)))


def parsed(project: DbtProject) -> "Manifest":
    """Return the parsed project; parse it again only if its sources changed."""
    stamp = fingerprint(project)
    before = _parsed.get(project.folder)
    if before is not None and before[0] == stamp:
        forget_compiled(before[1])
        return before[1]
    manifest = parse(project, write=False)
    _parsed[project.folder] = (stamp, manifest)
    return manifest


def forget_compiled(manifest: "Manifest") -> None:
    """Clear compiled code: dbt would reuse that of earlier runs."""
    nodes: Iterable[Any] = manifest.nodes.values()
    for node in nodes:
        if getattr(node, "compiled", False):
            node.compiled, node.compiled_code = False, None
            node.extra_ctes, node.extra_ctes_injected = [], False


@contextmanager
def marked(manifest: "Manifest", nodes: Set[str] | None) -> Iterator[list[str]]:
    """Give nodes a unique tag, and yield the flags that select exactly these nodes.

    dbt cannot select by id. Names may match folders as well, and comparing a thousand of them
    takes seconds.
    """
    if nodes is None:
        yield []
        return
    tag = f"floe_{uuid.uuid4().hex}"
    chosen = [node for name, node in manifest.nodes.items() if name in nodes]
    for node in chosen:
        node.tags.append(tag)
    try:
        yield ["--select", f"tag:{tag}", "--indirect-selection", "empty"]
    finally:
        for node in chosen:
            node.tags.remove(tag)


def _result(manifest: "Manifest", data: Any) -> NodeResult:
    info, result = data.node_info, data.run_result
    node = manifest.nodes.get(info.unique_id)
    return NodeResult(
        unique_id=info.unique_id,
        status=str(result.status).lower(),
        message=_without_jvm(str(result.message)),
        sql=getattr(node, "compiled_code", None),
        failures=int(result.num_failures),
        started_at=info.node_started_at,
        ended_at=info.node_finished_at,
        seconds=float(result.execution_time),
    )


def _without_jvm(message: str) -> str:
    """Cut off the JVM stack trace that follows Spark's message."""
    return message.partition(JVM)[0].rstrip()
