"""Look at what others deliver, for all that some processes read for a date."""

from collections.abc import Callable, Iterable
from datetime import date

from floe.catalog.versions import REJECTED
from floe.execution.formats.contract import DeliveryRejectedError
from floe.execution.planning import wanted_date
from floe.execution.sparks import Sparks
from floe.execution.versions.arrivals import Arrival, is_delivered, receive
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
    with sparks.session() as spark:
        # Reference data first: the checks of others compare with it.
        for dataset, when in sorted(wanted, key=lambda one: (_compares(workspace, one[0]), one)):
            arrivals.append(receive(workspace, spark, dataset, when))
            on_arrival(arrivals[-1])
    return arrivals


def refuse_rejected(process: ProcessSpec, arrivals: Iterable[Arrival]) -> None:
    """Raise if something was rejected that a process cannot do without: nothing stands on sand."""
    needed = {one.dataset for one in process.inputs.values() if not one.optional}
    for arrival in arrivals:
        if arrival.state == REJECTED and arrival.dataset in needed:
            raise DeliveryRejectedError(arrival.dataset, arrival.reason)


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
