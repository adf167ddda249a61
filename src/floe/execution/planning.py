"""Plan a run: which versions it reads, which it will make, and with which parameters.

A run for a business date reads what its mapping says as of that date, never a version of a later
one. What it reads is fixed here, before anything starts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from floe.catalog.processes import get_process
from floe.catalog.runs import get_run
from floe.catalog.tables import DatasetVersion
from floe.catalog.versions import get_version_of, last_ready, latest_ready, peek_tag
from floe.errors import FloeError
from floe.execution.formats.contract import VersionPlace
from floe.execution.versions.places import place_of
from floe.execution.workspace import UndeclaredError, Workspace
from floe.spec import ProcessSpec
from floe.spec.calendars import WEEKDAYS
from floe.spec.identity import default_business_date, floe_process, process_of_key
from floe.spec.nearby import suggest
from floe.spec.processes import EARLIER_DATES, Input, WriteMode

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

KINDS: tuple[tuple[type, Callable[[str], Any], str], ...] = (
    (int, int, "whole number"),
    (float, float, "number"),
    (date, date.fromisoformat, "date"),
)


class InputsMissingError(FloeError):
    """A process cannot run for a date, because versions are missing that it reads."""

    def __init__(
        self, process: str, key: str, missing: Sequence[str], reasons: Sequence[str] = ()
    ) -> None:
        self.process, self.key, self.missing = process, key, tuple(missing)
        told = "".join(f" {reason.rstrip('.')}." for reason in reasons)
        super().__init__(f"'{process}' cannot run for {key}: {'; '.join(missing)}.{told}")

    def because(self, reasons: Mapping[str, str]) -> "InputsMissingError":
        """Return it with the reasons why datasets have no version, as far as it lacks them."""
        told = [
            f"{dataset}: {reason}"
            for dataset, reason in reasons.items()
            if any(f"'{dataset}'" in lack for lack in self.missing)
        ]
        return InputsMissingError(self.process, self.key, self.missing, told)


class UnknownParameterError(FloeError):
    """A parameter was given that the process does not have."""

    def __init__(self, process: str, name: str, known: Sequence[str]) -> None:
        hint = suggest(name, list(known)) or f"It has: {', '.join(known) or 'none'}."
        super().__init__(f"'{process}' has no parameter '{name}'. {hint}")


class WrongParameterError(FloeError):
    """The value given for a parameter is not of its kind."""

    def __init__(self, name: str, value: str, kind: str) -> None:
        super().__init__(f"The parameter '{name}' is a {kind}, and '{value}' is none.")


class NotRepeatableError(FloeError):
    """A run did not say which versions it read under which alias."""

    def __init__(self, run_id: str) -> None:
        super().__init__(
            f"Run {run_id} did not note what it read by alias, so it cannot be repeated. "
            "Only runs of floe's own processes can."
        )


class OtherProcessError(FloeError):
    """A run is to be repeated as one of a process that it was not of."""

    def __init__(self, run_id: str, process: str, other: str) -> None:
        super().__init__(f"Run {run_id} was one of {other}, not of '{process}'.")


@dataclass(frozen=True)
class PlannedInput:
    """What a run reads under an alias."""

    alias: str
    dataset: str
    versions: tuple[VersionPlace, ...]
    numbers: tuple[int, ...]
    schema_hash: str | None = None
    rows: int | None = None

    @property
    def tags(self) -> list[str]:
        return [version.tag for version in self.versions]


@dataclass(frozen=True)
class PlannedOutput:
    """What a run will make under an alias."""

    alias: str
    dataset: str
    mode: WriteMode
    tag: str
    """The tag it gets if nobody is faster."""


@dataclass(frozen=True)
class RunPlan:
    """All that is settled before a run starts."""

    process: str
    spec: ProcessSpec
    business_date: date
    partition: str | None
    params: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, PlannedInput] = field(default_factory=dict)
    outputs: Mapping[str, PlannedOutput] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return self.partition or self.business_date.isoformat()


@dataclass(frozen=True)
class Wish:
    """What somebody wants to run."""

    process: str
    business_date: date | None = None
    partition: str | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    as_run: str | None = None
    """A run whose very versions are to be read."""


def plan_run(workspace: Workspace, wish: Wish, *, whole: bool = True) -> RunPlan:
    """Settle what a run reads and makes; say all that is missing at once, if it is to be whole."""
    spec = process_spec(workspace, wish.process)
    params = read_params(spec, wish)
    with workspace.catalog.reading() as session:
        day = _date_of(session, workspace, wish)
        key = wish.partition or day.isoformat()
        pinned = (
            None if wish.as_run is None else _pinned(session, workspace, wish.process, wish.as_run)
        )
        inputs, missing = {}, []
        for alias, one in spec.inputs.items():
            tags = None if pinned is None else pinned.get(alias, [])
            versions = (
                versions_for(session, workspace, one, day, wish.partition)
                if tags is None
                else _tagged(session, workspace, one, tags)
            )
            if not versions and not one.optional:
                missing.append(_lack(workspace, one, day))
            inputs[alias] = _planned(workspace, alias, one, versions)
        if missing and whole:
            raise InputsMissingError(wish.process, key, missing)
        outputs = {
            alias: PlannedOutput(
                alias,
                output.dataset,
                output.write,
                peek_tag(
                    session, workspace.dataset_id(output.dataset, session), day, wish.partition
                ),
            )
            for alias, output in spec.outputs.items()
        }
    return RunPlan(wish.process, spec, day, wish.partition, params, inputs, outputs)


@dataclass(frozen=True)
class MadeInPlan:
    """An input that an earlier step of the same plan makes."""

    process: str
    tags: Sequence[str]


def made_in_plan(plans: Sequence[RunPlan]) -> dict[tuple[str, str], MadeInPlan]:
    """Return the inputs, by process and alias, that earlier plans of a list make.

    The version of today is superseded by then, so it is not what the process will read.
    """
    made: dict[str, tuple[str, str]] = {}
    found: dict[tuple[str, str], MadeInPlan] = {}
    for plan in plans:
        for alias, planned in plan.inputs.items():
            spec = plan.spec.inputs[alias]
            if planned.dataset in made and spec.mapping not in EARLIER_DATES:
                process, tag = made[planned.dataset]
                count = (spec.count or 1) if spec.mapping == "last" else 1
                before = [
                    version.tag
                    for version in planned.versions
                    if version.business_date != plan.business_date
                ]
                found[plan.process, alias] = MadeInPlan(process, [tag, *before][:count])
        for output in plan.outputs.values():
            made[output.dataset] = plan.process, output.tag
    return found


def process_spec(workspace: Workspace, name: str) -> ProcessSpec:
    """Return what floe.yaml says of a process."""
    known = workspace.site.spec.processes
    if name not in known:
        raise UndeclaredError("process", name, list(known))
    return known[name]


def wanted_date(workspace: Workspace, one: Input, day: date) -> date | None:
    """Return the date whose version an input asks for; None when any up to the day will do."""
    if one.mapping == "same_date":
        return day
    if one.mapping == "previous_day":
        return day - timedelta(days=1)
    if one.mapping == "previous_business_day":
        name = one.calendar or workspace.site.spec.calendar or WEEKDAYS
        return workspace.site.spec.calendar_named(name).previous_business_day(day)
    return None


def off_day(workspace: Workspace, process: str, day: date) -> str:
    """Say that a date is no business day of a process, in one sentence; empty when it is one.

    The calendar is that of its promise, else that of the project; without any, every day is one.
    """
    spec = process_spec(workspace, process)
    name = (spec.sla and spec.sla.calendar) or workspace.site.spec.calendar
    if name is None or workspace.site.spec.calendar_named(name).is_business_day(day):
        return ""
    return f"{day} ({day:%A}) is no business day of {name}, the calendar of '{process}'."


def _tagged(
    session: "Session", workspace: Workspace, one: Input, tags: Sequence[str]
) -> Sequence[DatasetVersion]:
    number = workspace.dataset_id(one.dataset, session)
    return [get_version_of(session, number, tag) for tag in tags]


def versions_for(
    session: "Session", workspace: Workspace, one: Input, day: date, partition: str | None = None
) -> Sequence[DatasetVersion]:
    """Return what an input reads on a date: never a version of a later one.

    A run for a partition reads that of the same partition, where the input has partitions.
    """
    number = workspace.dataset_id(one.dataset, session)
    wanted = wanted_date(workspace, one, day)
    if wanted is not None:
        version = latest_ready(session, number, on=wanted, partition_key=partition)
        return [] if version is None else [version]
    since = None if one.max_age is None else day - one.max_age
    count = one.count if one.mapping == "last" else 1
    return last_ready(session, number, until=day, count=count or 1, since=since)


def _planned(
    workspace: Workspace, alias: str, one: Input, versions: Sequence[DatasetVersion]
) -> PlannedInput:
    counts = [version.row_count for version in versions]
    return PlannedInput(
        alias,
        one.dataset,
        tuple(place_of(workspace, one.dataset, version) for version in versions),
        tuple(version.dataset_version_id for version in versions),
        versions[0].schema_hash if versions else None,
        None if None in counts else sum(filter(None, counts)),
    )


def _lack(workspace: Workspace, one: Input, day: date) -> str:
    wanted = wanted_date(workspace, one, day)
    when = f"for {wanted}" if wanted else f"up to {day}"
    return f"'{one.dataset}' has no READY version {when} ({whose(workspace, one.dataset)})"


def whose(workspace: Workspace, dataset: str) -> str:
    """Name the processes or the team that a dataset comes from."""
    writers = writers_of(workspace, dataset)
    if writers:
        return f"written by {' and '.join(writers)}"
    owner = workspace.site.spec.owner_or_default(workspace.dataset(dataset).owner)
    return f"delivered by {owner.team}" if owner and owner.team else "delivered by others"


def writers_of(workspace: Workspace, dataset: str) -> list[str]:
    """Return the processes of the project that write a dataset."""
    processes = workspace.site.spec.processes.items()
    return [
        name
        for name, process in processes
        if any(output.dataset == dataset for output in process.outputs.values())
    ]


def _date_of(session: "Session", workspace: Workspace, wish: Wish) -> date:
    """The date that is wished for, else that of the run that is repeated, else today."""
    if wish.business_date is None and wish.as_run is not None:
        repeated = get_run(session, wish.as_run).business_date
        if repeated is not None:
            return repeated
    return wish.business_date or default_business_date(workspace.site.spec.timezone)


def _pinned(
    session: "Session", workspace: Workspace, process: str, run_id: str
) -> Mapping[str, Sequence[str]]:
    run = get_run(session, run_id)
    key = get_process(session, run.process_id).process_key
    if process_of_key(key) != floe_process(workspace.site.spec.name, process):
        raise OtherProcessError(run_id, process, key)
    noted = (run.facets_json or {}).get("floe", {}).get("inputs")
    if not isinstance(noted, dict):
        raise NotRepeatableError(run_id)
    return noted


def read_params(spec: ProcessSpec, wish: Wish) -> dict[str, Any]:
    """Return the parameters of a run: those declared, with the values that are wished for."""
    params = dict(spec.params)
    for name, text in wish.params.items():
        if name not in params:
            raise UnknownParameterError(wish.process, name, list(params))
        params[name] = _like(name, text, params[name])
    return params


def _like(name: str, text: str, before: Any) -> Any:
    """Read a value as of the same kind as the one that is declared."""
    if isinstance(before, bool):
        if text.lower() not in ("true", "false"):
            raise WrongParameterError(name, text, "truth value (true or false)")
        return text.lower() == "true"
    for kind, read, word in KINDS:
        if isinstance(before, kind):
            try:
                return read(text)
            except ValueError:
                raise WrongParameterError(name, text, word) from None
    return text
