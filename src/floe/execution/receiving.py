"""Look at what others deliver, for all that some processes read for a date."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date

from floe.catalog.shown import details_of
from floe.catalog.tables import DatasetVersion
from floe.catalog.versions import REJECTED, newest_of_date
from floe.execution.formats.contract import (
    Delivered,
    DeliveryIncompleteError,
    DeliveryRejectedError,
    Extracts,
    VersionPlace,
)
from floe.execution.formats.foreign import foreign_read, one_line, refuse_problem
from floe.execution.planning import InputsMissingError, RunPlan, wanted_date
from floe.execution.spark.faults import is_lost
from floe.execution.spark.reasons import spark_reason
from floe.execution.sparks import Sparks
from floe.execution.versions.arrivals import (
    MISSING,
    NOTHING,
    Arrival,
    is_delivered,
    is_settled,
    receive,
)
from floe.execution.versions.places import format_of
from floe.execution.workspace import Workspace
from floe.spec import ProcessSpec

OnArrival = Callable[[Arrival], None]


def receive_for(
    workspace: Workspace,
    sparks: Sparks,
    processes: Iterable[ProcessSpec],
    day: date,
    on_arrival: OnArrival = lambda _: None,
) -> list[Arrival]:
    """Register what was delivered for the dates that processes ask for; Spark only if need be."""
    wanted = set(_deliveries(workspace, processes, day))
    if not wanted:
        return []
    arrivals = []
    with ExitStack() as stack:
        receiver = _Receiver(workspace, sparks, stack)
        # Reference data first: the checks of others compare with it.
        for dataset, when in sorted(wanted, key=lambda one: (_compares(workspace, one[0]), one)):
            arrivals.append(receiver.receive(dataset, when))
            on_arrival(arrivals[-1])
    return arrivals


class _Receiver:
    """Receives in one Spark session, and in a new one when a delivery brought it down."""

    def __init__(self, workspace: Workspace, sparks: Sparks, stack: ExitStack) -> None:
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
            reason = f"Spark stopped twice while it was read: {one_line(spark_reason(error))}"
        self._open()
        return Arrival(dataset, MISSING, reason=reason)


def expected(workspace: Workspace, dataset: str, day: date) -> str:
    """Say what a run would find of a dataset that others deliver; no row is read."""
    if not is_delivered(workspace, dataset):
        return ""
    form = format_of(workspace, dataset)
    assert isinstance(form, Delivered)
    place = VersionPlace(dataset, workspace.dataset(dataset), f"{day}.0", day)
    try:
        with foreign_read(workspace.site, dataset):
            found = form.find(workspace.site, place)
            refuse_problem(dataset, found)
    except DeliveryIncompleteError as error:
        return f"is not complete: {error.reason}"
    except DeliveryRejectedError as error:
        return f"would be rejected: {error.reason}"
    if isinstance(form, Extracts):
        return "will be copied as it is then"
    return "" if found is None else "is there and will be received"


@dataclass(frozen=True)
class Unread:
    """What a look at a landing folder says of a delivery, before a row of it is read."""

    is_there: bool
    """Whether there is a delivery that no version of the catalog stands for."""
    replaces: bool = False
    """Whether it differs from a version that is known already."""
    reason: str = ""
    """What else there is to say: that it is incomplete, or copied from a database."""


def find_unread(
    workspace: Workspace, dataset: str, day: date, known: DatasetVersion | None
) -> Unread:
    """Say whether a run would find a delivery that the catalog does not know yet."""
    form = format_of(workspace, dataset)
    assert isinstance(form, Delivered)
    tag = f"{day}.0" if known is None else known.version_tag
    details = {} if known is None else details_of(known)
    place = VersionPlace(dataset, workspace.dataset(dataset), tag, day, details=details)
    try:
        with foreign_read(workspace.site, dataset):
            delivery = form.find(workspace.site, place)
    except DeliveryIncompleteError as error:
        return Unread(is_there=False, reason=f"whose delivery is incomplete: {error.reason}")
    except DeliveryRejectedError as error:
        return Unread(is_there=False, reason=f"whose delivery is wrong: {error.reason}")
    if isinstance(form, Extracts):
        return Unread(known is None, reason="is copied from its database when a run starts")
    if delivery is None or (known is not None and is_settled(workspace, dataset, known, delivery)):
        return Unread(is_there=False)
    return Unread(is_there=True, replaces=known is not None and known.checksum is not None)


def refuse_rejected(process: ProcessSpec, arrivals: Iterable[Arrival]) -> None:
    """Raise if something was rejected that a process cannot do without: nothing stands on sand."""
    needed = {one.dataset for one in process.inputs.values() if not one.optional}
    for arrival in arrivals:
        if arrival.state == REJECTED and arrival.dataset in needed:
            raise DeliveryRejectedError(arrival.dataset, arrival.reason)


@contextmanager
def missing_explained(arrivals: Iterable[Arrival]) -> Iterator[None]:
    """Say of inputs that have no version why their deliveries gave none."""
    try:
        yield
    except InputsMissingError as error:
        reasons = {
            one.dataset: one.reason
            for one in arrivals
            if one.state == MISSING and not one.reason.startswith(NOTHING)
        }
        raise error.because(reasons) from error


def deliveries_for(workspace: Workspace, plan: RunPlan) -> dict[str, str]:
    """Say by alias what a run would receive: of inputs without a version, and new deliveries."""
    found = {}
    for alias, planned in plan.inputs.items():
        one = plan.spec.inputs[alias]
        day = wanted_date(workspace, one, plan.business_date) or plan.business_date
        if not planned.versions:
            found[alias] = expected(workspace, one.dataset, day)
        elif is_delivered(workspace, one.dataset):
            found[alias] = _replacing(workspace, one.dataset, day)
    return {alias: said for alias, said in found.items() if said}


def _replacing(workspace: Workspace, dataset: str, day: date) -> str:
    """Say that a delivery is there which replaces the version that is known."""
    with workspace.catalog.reading() as session:
        known = newest_of_date(session, workspace.dataset_id(dataset, session), day)
    unread = find_unread(workspace, dataset, day, known)
    return "a new delivery is there and will be received" if unread.replaces else ""


def _deliveries(
    workspace: Workspace, processes: Iterable[ProcessSpec], day: date
) -> list[tuple[str, date]]:
    return [
        (one.dataset, wanted_date(workspace, one, day) or day)
        for process in processes
        for one in process.inputs.values()
        if is_delivered(workspace, one.dataset)
    ]


def _compares(workspace: Workspace, dataset: str) -> bool:
    return any(check.kind == "referential" for check in workspace.dataset(dataset).checks)
