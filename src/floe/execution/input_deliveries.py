"""Receive the deliveries that processes read, and describe describe_expected ones."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date

from floe.catalog.stable_names import details_of
from floe.catalog.tables import DatasetVersion
from floe.catalog.version_queries import newest_of_date
from floe.catalog.versions import REJECTED
from floe.execution.formats.contract import (
    Deliverable,
    DeliveryIncompleteError,
    DeliveryRejectedError,
    Extractable,
    StoredVersion,
)
from floe.execution.formats.delivery_errors import foreign_read, one_line, reject_problem
from floe.execution.planning import InputsMissingError, RunPlan, wanted_date
from floe.execution.spark.errors import is_lost, spark_reason
from floe.execution.spark.session import SparkSessions
from floe.execution.versions.arrivals import (
    MISSING,
    NOTHING,
    Arrival,
    is_already_received,
    is_delivered,
    receive,
)
from floe.execution.versions.version_access import format_of
from floe.execution.workspace import Workspace
from floe.spec import ProcessSpec

OnArrival = Callable[[Arrival], None]


def receive_for(
    workspace: Workspace,
    sparks: SparkSessions,
    processes: Iterable[ProcessSpec],
    day: date,
    on_arrival: OnArrival = lambda _: None,
) -> list[Arrival]:
    """Register the deliveries that processes read. Starts Spark only if needed."""
    wanted = set(_deliveries(workspace, processes, day))
    if not wanted:
        return []
    arrivals = []
    with ExitStack() as stack:
        receiver = _Receiver(workspace, sparks, stack)
        # Reference data first, because checks of other datasets compare with it.
        for dataset, when in sorted(
            wanted, key=lambda delivery: (_has_referential_check(workspace, delivery[0]), delivery)
        ):
            arrivals.append(receiver.receive(dataset, when))
            on_arrival(arrivals[-1])
    return arrivals


class _Receiver:
    """Receives in one Spark session; retries in a new one if a delivery crashed it."""

    def __init__(self, workspace: Workspace, sparks: SparkSessions, stack: ExitStack) -> None:
        self._workspace, self._sparks, self._stack = workspace, sparks, stack
        self._open()

    def _open(self) -> None:
        self._spark = self._stack.enter_context(self._sparks.session())

    def receive(self, dataset: str, day: date) -> Arrival:
        try:
            return receive(self._workspace, self._spark, dataset, day)
        except Exception as error:
            if not is_lost(error):
                raise
        self._open()
        try:
            return receive(self._workspace, self._spark, dataset, day)
        except Exception as error:
            if not is_lost(error):
                raise
            reason = f"Spark stopped twice while reading it: {one_line(spark_reason(error))}"
        self._open()
        return Arrival(dataset, MISSING, reason=reason)


def describe_expected(workspace: Workspace, dataset: str, day: date) -> str:
    """Describe the delivery that a run would receive; reads no rows."""
    if not is_delivered(workspace, dataset):
        return ""
    form = format_of(workspace, dataset)
    assert isinstance(form, Deliverable)
    location = StoredVersion(dataset, workspace.dataset(dataset), f"{day}.0", day)
    try:
        with foreign_read(workspace.site, dataset):
            delivery = form.find(workspace.site, location)
            reject_problem(dataset, delivery)
    except DeliveryIncompleteError as error:
        return f"is not complete: {error.reason}"
    except DeliveryRejectedError as error:
        return f"would be rejected: {error.reason}"
    if isinstance(form, Extractable):
        return "will be copied when the run starts"
    return "" if delivery is None else "has arrived and will be received"


@dataclass(frozen=True)
class UnreadDelivery:
    """What the landing folder shows about a delivery, before any row is read."""

    is_there: bool
    """Whether there is a delivery that is not registered as a version."""
    replaces: bool = False
    """Whether it replaces a registered version."""
    reason: str = ""
    """More about it: it is incomplete or invalid, or will be copied from a database."""


def find_unread(
    workspace: Workspace, dataset: str, day: date, known: DatasetVersion | None
) -> UnreadDelivery:
    """Look for a delivery that is not registered yet."""
    form = format_of(workspace, dataset)
    assert isinstance(form, Deliverable)
    tag = f"{day}.0" if known is None else known.version_tag
    details = {} if known is None else details_of(known)
    location = StoredVersion(dataset, workspace.dataset(dataset), tag, day, details=details)
    try:
        with foreign_read(workspace.site, dataset):
            delivery = form.find(workspace.site, location)
    except DeliveryIncompleteError as error:
        return UnreadDelivery(
            is_there=False, reason=f"whose delivery is incomplete: {error.reason}"
        )
    except DeliveryRejectedError as error:
        return UnreadDelivery(is_there=False, reason=f"whose delivery is invalid: {error.reason}")
    if isinstance(form, Extractable):
        return UnreadDelivery(known is None, reason="is copied from its database when a run starts")
    if delivery is None or (
        known is not None and is_already_received(workspace, dataset, known, delivery)
    ):
        return UnreadDelivery(is_there=False)
    return UnreadDelivery(is_there=True, replaces=known is not None and known.checksum is not None)


def refuse_rejected(process: ProcessSpec, arrivals: Iterable[Arrival]) -> None:
    """Raise if a delivery that a process requires was rejected."""
    needed = {
        process_input.dataset
        for process_input in process.inputs.values()
        if not process_input.optional
    }
    for arrival in arrivals:
        if arrival.state == REJECTED and arrival.dataset in needed:
            raise DeliveryRejectedError(arrival.dataset, arrival.reason)


@contextmanager
def explain_missing_inputs(arrivals: Iterable[Arrival]) -> Iterator[None]:
    """Add the reasons why deliveries are missing to an InputsMissingError."""
    try:
        yield
    except InputsMissingError as error:
        reasons = {
            arrival.dataset: arrival.reason
            for arrival in arrivals
            if arrival.state == MISSING and not arrival.reason.startswith(NOTHING)
        }
        raise error.because(reasons) from error


def deliveries_for(workspace: Workspace, plan: RunPlan) -> dict[str, str]:
    """Describe by alias what a run would receive for missing or outdated inputs."""
    notes = {}
    for alias, planned in plan.inputs.items():
        process_input = plan.spec.inputs[alias]
        day = wanted_date(workspace, process_input, plan.business_date) or plan.business_date
        if not planned.versions:
            notes[alias] = describe_expected(workspace, process_input.dataset, day)
        elif is_delivered(workspace, process_input.dataset):
            notes[alias] = _describe_replacement(workspace, process_input.dataset, day)
    return {alias: note for alias, note in notes.items() if note}


def _describe_replacement(workspace: Workspace, dataset: str, day: date) -> str:
    """Describe a delivery that would replace the registered version."""
    with workspace.catalog.reading() as session:
        known = newest_of_date(session, workspace.dataset_id(dataset, session), day)
    unread = find_unread(workspace, dataset, day, known)
    return "a new delivery has arrived and will be received" if unread.replaces else ""


def _deliveries(
    workspace: Workspace, processes: Iterable[ProcessSpec], day: date
) -> list[tuple[str, date]]:
    return [
        (process_input.dataset, wanted_date(workspace, process_input, day) or day)
        for process in processes
        for process_input in process.inputs.values()
        if is_delivered(workspace, process_input.dataset)
    ]


def _has_referential_check(workspace: Workspace, dataset: str) -> bool:
    return any(check.kind == "referential" for check in workspace.dataset(dataset).checks)
