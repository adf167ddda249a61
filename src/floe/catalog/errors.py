"""Errors of the catalog's functions, with a hint what to do next."""

from collections.abc import Iterable, Sequence

from floe.errors import FloeError
from floe.spec.nearby import suggest


class NotFoundError(FloeError):
    """The catalog does not have the requested object."""


class DatasetNotFoundError(NotFoundError):
    """The catalog has no dataset of this name."""

    def __init__(self, name: str, near: Sequence[str] = ()) -> None:
        self.name = name
        hint = f"Did you mean '{near[0]}'?" if near else "List them with: floe datasets"
        super().__init__(f"No dataset named '{name}' is registered. {hint}")


class AmbiguousDatasetError(FloeError):
    """A short name matches several datasets."""

    def __init__(self, name: str, full_names: Iterable[str]) -> None:
        listed = ", ".join(f"'{full_name}'" for full_name in sorted(full_names))
        super().__init__(f"'{name}' is the name of several datasets: {listed}. Use the full name.")


class ProcessNotFoundError(NotFoundError):
    """The catalog has no process with this key."""

    def __init__(self, key: str, known: Iterable[str] = ()) -> None:
        self.key = key
        hint = suggest(key, known, "List them with: floe processes")
        super().__init__(f"No process with the key '{key}' is registered. {hint}")


class AmbiguousProcessError(FloeError):
    """A short name matches several processes."""

    def __init__(self, name: str, keys: Iterable[str]) -> None:
        listed = ", ".join(f"'{key}'" for key in sorted(keys))
        super().__init__(f"'{name}' is the name of several processes: {listed}. Use the full key.")


class VersionNotFoundError(NotFoundError):
    """The dataset has no version with this tag."""

    def __init__(self, dataset: str, tag: str, known: Iterable[str] = ()) -> None:
        hint = suggest(tag, known, f"List them with: floe versions {dataset}")
        super().__init__(f"Dataset '{dataset}' has no version '{tag}'. {hint}")


class RunNotFoundError(NotFoundError):
    """The catalog has no run with this id."""

    def __init__(self, run_uuid: str) -> None:
        super().__init__(f"No run with id '{run_uuid}'. List them with: floe runs")


class RunAmbiguousError(NotFoundError):
    """Several run ids start with the given prefix."""

    def __init__(self, prefix: str, matches: Iterable[str]) -> None:
        listed = ", ".join(sorted(matches))
        super().__init__(f"Several run ids start with '{prefix}': {listed}. Use a longer prefix.")


class RegistrationNotFoundError(NotFoundError):
    """No registration has this id."""

    def __init__(self, reg_id: int) -> None:
        super().__init__(
            f"No registration with id {reg_id}. List them with: GET /api/v1/registrations"
        )


class WrongStateError(FloeError):
    """The object's state does not allow the requested change."""

    def __init__(self, subject: str, state: str, wanted: str, allowed: Iterable[str]) -> None:
        super().__init__(f"{subject} is {_refusal(state, wanted, sorted(allowed))}")


def _refusal(state: str, wanted: str, allowed: list[str]) -> str:
    if state == wanted:
        return f"already {state}."
    if not allowed:
        return f"{state} and cannot become {wanted}: {state} is final."
    return f"{state} and cannot become {wanted}. From {state} it can become: {', '.join(allowed)}."


class DatasetExistsError(FloeError):
    """A dataset of this name already exists."""

    problem = "already registered. Choose another name."

    def __init__(self, full_name: str) -> None:
        super().__init__(f"A dataset named '{full_name}' is {self.problem}")


class RegistrationPendingError(DatasetExistsError):
    """A registration of the dataset is already waiting for a steward's decision."""

    problem = "already requested. Wait for approval: GET /api/v1/registrations?status=PENDING"


class WriterConflictError(FloeError):
    """Several declared processes write a dataset that allows only one writer."""

    def __init__(self, dataset: str, writers: Iterable[str]) -> None:
        listed = " and ".join(f"'{writer}'" for writer in sorted(writers))
        super().__init__(
            f"Dataset '{dataset}' is written by {listed}. "
            f"Let only one process write it, or declare the dataset with 'writers: many'."
        )


class OwnedElsewhereError(FloeError):
    """A project declares an object that another project owns."""

    def __init__(self, kind: str, name: str, owner: str, project: str) -> None:
        super().__init__(
            f"{kind} '{name}' belongs to project '{owner}', so project '{project}' cannot declare "
            f"it. Read it without declaring it, or remove it from '{owner}' first."
        )
