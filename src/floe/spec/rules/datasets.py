"""Rules for datasets: what one declares fits together, and what it refers to exists."""

from collections.abc import Iterator
from dataclasses import replace
from string import Formatter

from floe.spec.datasets import DatasetSpec
from floe.spec.findings import KeyPath, Problem
from floe.spec.formats import BUILT_IN, JdbcOptions, known_formats
from floe.spec.nearby import suggest
from floe.spec.rules.calendars import unknown_calendar
from floe.spec.rules.checks import check_check, unknown_column
from floe.spec.rules.draft import Draft
from floe.spec.rules.files import missing_file
from floe.spec.shape import shape

ON_DISK = frozenset({"parquet", "csv", "fixed_width", "files"})
"""Formats whose files floe itself lists, moves and removes."""
PLACEHOLDERS = frozenset({"business_date", "partition", "version", "dataset", "run_id"})


def check_datasets(draft: Draft) -> Iterator[Problem]:
    """Find what is wrong with each dataset."""
    for name, dataset in draft.spec.datasets.items():
        path = ("datasets", name)
        yield from _check_format(draft, path, dataset)
        yield from _check_places(path, dataset)
        yield from _check_columns(path, dataset, draft.columns(name))
        yield from _check_references(draft, path, name, dataset)
        yield from _check_requirements(draft, path)
        for index, check in enumerate(dataset.checks):
            yield from check_check(draft, (*path, "checks", index), name, check)


def _check_format(draft: Draft, path: KeyPath, dataset: DatasetSpec) -> Iterator[Problem]:
    model = BUILT_IN.get(dataset.format)
    if model is None and dataset.format not in known_formats():
        hint = draft.suggestions.suggest(dataset.format, known_formats())
        yield Problem((*path, "format"), f"no format named '{dataset.format}'", hint)
    if model is None:
        return
    shaped = shape(model, dict(dataset.options))
    for problem in shaped.problems:
        at, also = (*path, "options", *problem.path), ((*path, "format"),)
        yield replace(problem, path=at, also=also)
    if isinstance(shaped.spec, JdbcOptions):
        wrong = {problem.path for problem in shaped.problems}
        for problem in _check_jdbc(draft, path, shaped.spec):
            if problem.path[len(path) + 1 :] not in wrong:
                yield problem
    if dataset.format == "fixed_width":
        yield from _check_widths(path, dataset)


def _check_jdbc(draft: Draft, dataset: KeyPath, options: JdbcOptions) -> Iterator[Problem]:
    path = (*dataset, "options")
    neither = draft.lacks(path, JdbcOptions, "table", "query")
    if neither or (options.table is not None and options.query is not None):
        yield Problem(path, "needs either a table or a query", "Give one of the two.", at_key=True)
    if options.query is not None:
        yield from missing_file(draft, (*path, "query"), options.query)


def _check_widths(path: KeyPath, dataset: DatasetSpec) -> Iterator[Problem]:
    if not dataset.columns:
        yield Problem(
            (*path, "schema"), "is missing", "A fixed-width file needs its columns.", at_key=True
        )
    for index, column in enumerate(dataset.columns):
        if column.width is None:
            hint = "Say how many characters the column takes."
            yield Problem((*path, "schema", index, "width"), "is missing", hint, at_key=True)


def _check_places(path: KeyPath, dataset: DatasetSpec) -> Iterator[Problem]:
    places: list[tuple[KeyPath, str | None]] = [((*path, "location"), dataset.location)]
    if dataset.feed is not None:
        places.append(((*path, "feed", "latest"), dataset.feed.latest))
    manifest_path = getattr(dataset.manifest, "path", None)
    places.append(((*path, "manifest", "path"), manifest_path))
    for at, place in places:
        if place is not None and "{" in place:
            yield from _check_placeholders(at, place)
        if place is not None and "://" in place and dataset.format in ON_DISK:
            message = f"'{place}' is an address, and files of format {dataset.format} are on a disk"
            hint = "Mount it and write a path, or keep the dataset as a lake table (iceberg)."
            yield Problem(at, message, hint)


def _check_placeholders(path: KeyPath, place: str) -> Iterator[Problem]:
    try:
        names = [name for _, name, _, _ in Formatter().parse(place) if name is not None]
    except ValueError:
        yield Problem(path, f"'{place}' has a brace that is not closed", "Write {business_date}.")
        return
    for name in names:
        if name not in PLACEHOLDERS:
            hint = suggest(name, PLACEHOLDERS)
            yield Problem(path, f"no placeholder named '{{{name}}}'", hint)


def _check_columns(
    path: KeyPath, dataset: DatasetSpec, columns: tuple[str, ...]
) -> Iterator[Problem]:
    names = dataset.column_names
    if len(set(names)) < len(names):
        for index, name in enumerate(names):
            if name in names[:index]:
                at = (*path, "schema", index, "name")
                yield Problem(at, f"the column '{name}' is given twice", "Keep one of them.")
    for index, name in enumerate(dataset.keys):
        yield from unknown_column((*path, "keys", index), name, columns)
    if dataset.partition_column is not None and dataset.format != "jdbc":
        at = (*path, "partition_column")
        yield from unknown_column(at, dataset.partition_column, columns)


def _check_references(
    draft: Draft, path: KeyPath, name: str, dataset: DatasetSpec
) -> Iterator[Problem]:
    partitions = draft.names("orchestration", "partitions")
    if dataset.partitions is not None and dataset.partitions not in partitions:
        otherwise = "Declare it under orchestration.partitions."
        at = (*path, "partitions")
        yield draft.unknown(at, "partitions", dataset.partitions, partitions, otherwise)
    if dataset.sla is not None:
        yield from unknown_calendar(draft, (*path, "sla", "calendar"), dataset.sla.calendar)
    if dataset.renamed_from is not None and dataset.renamed_from in draft.names("datasets"):
        message = f"'{dataset.renamed_from}' is still declared"
        at = (*path, "renamed_from")
        yield Problem(at, message, f"Remove it, or remove renamed_from of '{name}'.")
    yield from _check_classifications(draft, path, dataset)


def _check_classifications(draft: Draft, path: KeyPath, dataset: DatasetSpec) -> Iterator[Problem]:
    known = draft.spec.governance.classifications
    used = [((*path, "classification"), dataset.classification)]
    for index, column in enumerate(dataset.columns):
        used.append(((*path, "schema", index, "classification"), column.classification))
    for at, name in used:
        if name is not None and name not in known:
            yield Problem(at, f"no classification named '{name}'", suggest(name, known))


def _check_requirements(draft: Draft, path: KeyPath) -> Iterator[Problem]:
    governance = draft.spec.governance
    written = draft.written(path)
    for key in governance.require:
        covered = key == "owner" and governance.default_owner is not None
        covered = covered or (key == "retention" and governance.default_retention is not None)
        lacks = draft.lacks(path, DatasetSpec, key) or (key in written and not written[key])
        if lacks and not covered:
            message = "is missing, and governance.require demands it"
            yield Problem((*path, key), message, "Add it.", at_key=True)
