"""Rules for datasets: options, locations, columns, references and checks."""

from collections.abc import Iterator
from dataclasses import replace
from string import Formatter

from floe.spec.checks import (
    AcceptedValuesCheck,
    AnyCheck,
    FreshnessCheck,
    NotNullCheck,
    RangeCheck,
    ReferentialCheck,
    RowCountCheck,
    SqlCheck,
    UniqueCheck,
)
from floe.spec.datasets import DatasetSpec
from floe.spec.findings import KeyPath, Problem
from floe.spec.formats import BUILT_IN, JdbcOptions, known_formats
from floe.spec.nearby import suggest
from floe.spec.rules.draft import Draft, missing_file, unknown_calendar
from floe.spec.validation import validate_tree

ON_DISK = frozenset({"parquet", "csv", "fixed_width", "files"})
"""Formats whose files floe itself lists, moves and removes on a local disk."""
PLACEHOLDERS = frozenset({"business_date", "partition", "version", "dataset", "run_id"})


def check_datasets(draft: Draft) -> Iterator[Problem]:
    """Find the problems of each dataset."""
    for name, dataset in draft.spec.datasets.items():
        path = ("datasets", name)
        yield from _check_format(draft, path, dataset)
        yield from _check_locations(path, dataset)
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
    validated = validate_tree(model, dict(dataset.options))
    for problem in validated.problems:
        at, also = (*path, "options", *problem.path), ((*path, "format"),)
        yield replace(problem, path=at, also=also)
    if isinstance(validated.spec, JdbcOptions):
        wrong = {problem.path for problem in validated.problems}
        for problem in _check_jdbc(draft, path, validated.spec):
            if problem.path[len(path) + 1 :] not in wrong:
                yield problem
    if dataset.format == "fixed_width":
        yield from _check_widths(path, dataset)


def _check_jdbc(draft: Draft, dataset: KeyPath, options: JdbcOptions) -> Iterator[Problem]:
    path = (*dataset, "options")
    neither = draft.lacks(path, JdbcOptions, "table", "query")
    if neither or (options.table is not None and options.query is not None):
        yield Problem(
            path, "needs either a table or a query", "Give exactly one of them.", at_key=True
        )
    if options.query is not None:
        yield from missing_file(draft, (*path, "query"), options.query)


def _check_widths(path: KeyPath, dataset: DatasetSpec) -> Iterator[Problem]:
    if not dataset.columns:
        yield Problem(
            (*path, "schema"), "is missing", "A fixed-width file needs a schema.", at_key=True
        )
    for index, column in enumerate(dataset.columns):
        if column.width is None:
            hint = "Give the number of characters of the column."
            yield Problem((*path, "schema", index, "width"), "is missing", hint, at_key=True)


def _check_locations(path: KeyPath, dataset: DatasetSpec) -> Iterator[Problem]:
    locations: list[tuple[KeyPath, str | None]] = [((*path, "location"), dataset.location)]
    if dataset.feed is not None:
        locations.append(((*path, "feed", "latest"), dataset.feed.latest))
    manifest_path = getattr(dataset.manifest, "path", None)
    locations.append(((*path, "manifest", "path"), manifest_path))
    for at, location in locations:
        if location is not None and "{" in location:
            yield from _check_placeholders(at, location)
        if location is not None and "://" in location and dataset.format in ON_DISK:
            message = (
                f"'{location}' is a URL, but format {dataset.format} needs files on a local disk"
            )
            hint = "Mount it and use a path, or store the dataset as a lake table (iceberg)."
            yield Problem(at, message, hint)


def _check_placeholders(path: KeyPath, location: str) -> Iterator[Problem]:
    try:
        names = [name for _, name, _, _ in Formatter().parse(location) if name is not None]
    except ValueError:
        yield Problem(path, f"'{location}' has an unclosed brace", "Write {business_date}.")
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
                yield Problem(at, f"the column '{name}' is duplicated", "Keep one of them.")
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
            message = "is missing, but governance.require demands it"
            yield Problem((*path, key), message, "Add it.", at_key=True)


def check_check(draft: Draft, path: KeyPath, dataset: str, check: AnyCheck) -> Iterator[Problem]:
    """Find the problems of one check of a dataset."""
    columns = draft.columns(dataset)
    if isinstance(check, NotNullCheck | UniqueCheck | ReferentialCheck):
        for index, name in enumerate(check.columns):
            yield from unknown_column((*path, "columns", index), name, columns)
    if isinstance(check, AcceptedValuesCheck | RangeCheck | FreshnessCheck):
        yield from unknown_column((*path, "column"), check.column, columns)
    if isinstance(check, RangeCheck | RowCountCheck):
        yield from _check_bounds(path, check)
    if isinstance(check, ReferentialCheck):
        yield from _check_referential(draft, path, check)
    if isinstance(check, SqlCheck):
        yield from missing_file(draft, (*path, "sql"), check.sql)


def unknown_column(path: KeyPath, name: str, columns: tuple[str, ...]) -> Iterator[Problem]:
    """Find a column that is not in the schema, if there is a schema."""
    if columns and name not in columns:
        yield Problem(path, f"no column named '{name}' in the schema", suggest(name, columns))


def _check_bounds(path: KeyPath, check: RangeCheck | RowCountCheck) -> Iterator[Problem]:
    change = check.max_change if isinstance(check, RowCountCheck) else None
    if check.min is None and check.max is None and change is None:
        also = tuple((*path, key) for key in ("min", "max", "max_change"))
        yield Problem(path, "has no bound", "Give it a min or a max.", also=also)
    elif check.min is not None and check.max is not None and _exceeds(check.min, check.max):
        also = ((*path, "max"),)
        message = f"the min {check.min} is greater than the max {check.max}"
        yield Problem((*path, "min"), message, "Swap them.", also=also)


def _exceeds(low: object, high: object) -> bool:
    """Compare numbers as numbers and dates as text; False if they cannot be compared."""
    if isinstance(low, int | float) and isinstance(high, int | float):
        return low > high
    return isinstance(low, str) and isinstance(high, str) and low > high


def _check_referential(draft: Draft, path: KeyPath, check: ReferentialCheck) -> Iterator[Problem]:
    datasets = draft.names("datasets")
    if check.dataset not in datasets:
        otherwise = "Declare it under datasets."
        yield draft.unknown((*path, "dataset"), "dataset", check.dataset, datasets, otherwise)
        return
    columns = check.to_columns or check.columns
    if len(columns) != len(check.columns):
        message = f"has {len(columns)} columns; expected {len(check.columns)}"
        yield Problem((*path, "to_columns"), message, "Name as many as in columns.")
    others = draft.columns(check.dataset)
    key = "to_columns" if check.to_columns else "columns"
    for index, name in enumerate(columns):
        if others and name not in others:
            message = f"no column named '{name}' in '{check.dataset}'"
            yield Problem((*path, key, index), message, suggest(name, others))
