"""What can be wrong with a question to the catalog, and what to do then."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from floe.errors import FloeError


def _hint(name: str, known: Iterable[str], otherwise: str) -> str:
    near = get_close_matches(name, list(known), n=1)
    return f"Did you mean '{near[0]}'?" if near else otherwise


class NotFoundError(FloeError):
    """Something was named that the catalog does not hold."""


class DatasetNotFoundError(NotFoundError):
    """A dataset was named that the catalog does not hold."""

    def __init__(self, name: str, near: Sequence[str] = ()) -> None:
        self.name = name
        hint = f"Did you mean '{near[0]}'?" if near else "List them with: floe datasets"
        super().__init__(f"No dataset named '{name}' is registered. {hint}")


class AmbiguousDatasetError(FloeError):
    """A short name fits several datasets."""

    def __init__(self, name: str, full_names: Iterable[str]) -> None:
        listed = ", ".join(f"'{full_name}'" for full_name in sorted(full_names))
        super().__init__(f"'{name}' is the name of several datasets: {listed}. Use the full name.")


class ProcessNotFoundError(NotFoundError):
    """A process was named that the catalog does not hold."""

    def __init__(self, key: str, known: Iterable[str] = ()) -> None:
        self.key = key
        hint = _hint(key, known, "List them with: floe processes")
        super().__init__(f"No process with the key '{key}' is registered. {hint}")


class AmbiguousProcessError(FloeError):
    """A short name fits several processes."""

    def __init__(self, name: str, keys: Iterable[str]) -> None:
        listed = ", ".join(f"'{key}'" for key in sorted(keys))
        super().__init__(f"'{name}' is the name of several processes: {listed}. Use the full key.")


class VersionNotFoundError(NotFoundError):
    """A version was named that the dataset does not have."""

    def __init__(self, dataset: str, tag: str, known: Iterable[str] = ()) -> None:
        hint = _hint(tag, known, f"List them with: floe versions {dataset}")
        super().__init__(f"Dataset '{dataset}' has no version '{tag}'. {hint}")


class RunNotFoundError(NotFoundError):
    """A run was named that the catalog does not hold."""

    def __init__(self, run_uuid: str) -> None:
        super().__init__(f"No run '{run_uuid}' is known. List them with: floe runs")


class RunAmbiguousError(NotFoundError):
    """The first letters of a run's id were given, and several begin so."""

    def __init__(self, beginning: str, found: Iterable[str]) -> None:
        listed = ", ".join(sorted(found))
        super().__init__(f"Several runs begin with '{beginning}': {listed}. Give more letters.")


class RegistrationNotFoundError(NotFoundError):
    """A registration was named that the catalog does not hold."""

    def __init__(self, reg_id: int) -> None:
        super().__init__(f"No registration has the number {reg_id}.")


class WrongStateError(FloeError):
    """Something is asked of a row that its state does not allow."""

    def __init__(self, what: str, state: str, wanted: str, allowed: Iterable[str]) -> None:
        super().__init__(f"{what} is {_refusal(state, wanted, sorted(allowed))}")


def _refusal(state: str, wanted: str, allowed: list[str]) -> str:
    if state == wanted:
        return f"already {state}."
    if not allowed:
        return f"{state} and cannot become {wanted}: {state} is final."
    return f"{state} and cannot become {wanted}. From {state} it can become: {', '.join(allowed)}."


class DatasetExistsError(FloeError):
    """A name is taken."""

    taken = "registered already. Choose another name."

    def __init__(self, full_name: str) -> None:
        super().__init__(f"A dataset named '{full_name}' is {self.taken}")


class RegistrationPendingError(DatasetExistsError):
    """A dataset is asked for while a steward has yet to decide about it."""

    taken = "asked for already. Wait for the decision: GET /api/v1/registrations?status=PENDING"


class WriterConflictError(FloeError):
    """Two declared processes write one dataset that allows one writer."""

    def __init__(self, dataset: str, writers: Iterable[str]) -> None:
        listed = " and ".join(f"'{writer}'" for writer in sorted(writers))
        super().__init__(
            f"Dataset '{dataset}' is written by {listed}. "
            f"Let one of them write it, or declare the dataset with 'writers: many'."
        )


class OwnedElsewhereError(FloeError):
    """A project declares what another project owns."""

    def __init__(self, kind: str, name: str, owner: str, project: str) -> None:
        super().__init__(
            f"{kind} '{name}' belongs to project '{owner}', so project '{project}' cannot declare "
            f"it. Read it without declaring it, or remove it from '{owner}' first."
        )
