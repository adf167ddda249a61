"""Rules for names: of datasets, processes, columns, Python functions and modules."""

import re
from typing import Annotated

from pydantic import AfterValidator

from floe.spec.base import must_match, text_schema, value_error

check_dataset_name = must_match(
    r"[a-z_][a-z0-9_]*(?:\.[a-z0-9_]+)+",
    "a dataset name",
    "Write it as schema.table in lower case, such as credit.exposure.",
    "schema.table",
)
check_process_name = must_match(
    r"[a-z_][a-z0-9_]*(?:\.[a-z0-9_]+)*",
    "a process name",
    "Use lower-case letters, digits, _ and dots, such as credit.exposure_daily.",
    "process",
)
DatasetName = Annotated[str, AfterValidator(check_dataset_name)]
ProcessName = Annotated[str, AfterValidator(check_process_name)]
Name = Annotated[
    str,
    AfterValidator(
        must_match(r"[A-Za-z0-9_]+", "a name", "Use letters, digits and _ only.", "name")
    ),
]
ProfileName = Annotated[
    str,
    AfterValidator(
        must_match(r"[A-Za-z0-9_-]+", "a name", "Use letters, digits, _ and - only.", "default")
    ),
]
Alias = Annotated[
    str,
    AfterValidator(
        must_match(
            r"[A-Za-z_][A-Za-z0-9_]*",
            "an alias",
            "Start with a letter; use letters, digits and _ only, because SQL uses this name.",
            "alias",
        )
    ),
]
ProjectName = Annotated[
    str,
    AfterValidator(
        must_match(
            r"[A-Za-z0-9][A-Za-z0-9_-]*",
            "a project name",
            "Use letters, digits, - and _, such as credit-risk.",
            "project",
        )
    ),
]
SqlName = Annotated[
    str,
    AfterValidator(
        must_match(r"[A-Za-z_][A-Za-z0-9_]*", "a name", "Use letters, digits and _ only.", "lake")
    ),
]
Memory = Annotated[
    str,
    AfterValidator(
        must_match(r"[1-9][0-9]*[mg]", "an amount of memory", "Write it as 512m or 4g.", "4g")
    ),
]
Email = Annotated[
    str,
    AfterValidator(
        must_match(
            r"[^@\s]+@[^@\s]+",
            "an e-mail address",
            "Write it as team@example.com.",
            "team@example.com",
        )
    ),
]
check_function = must_match(
    r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*[.:][A-Za-z_]\w*",
    "a function",
    "Write it as module.function, such as risk.scoring.rate.",
    "module.function",
)
FunctionRef = Annotated[str, AfterValidator(check_function)]
ModuleRef = Annotated[
    str,
    AfterValidator(
        must_match(
            r"\.*[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*",
            "a module",
            "Write it as package.module, such as orchestration.assets.bronze.",
            "package.module",
        )
    ),
]


def check_regex(pattern: str) -> str:
    """Accept a valid Python regular expression."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        hint = 'Correct it; a literal dot or bracket needs a backslash: "\\.".'
        raise value_error(
            f"'{pattern}' is not a valid regular expression: {error}", hint, ".*"
        ) from None
    return pattern


def check_glob(pattern: str) -> str:
    """Accept a pattern with *, ?, closed [sets], and ** as a whole path element."""
    if not pattern.strip():
        raise value_error("the pattern is empty", "Use a pattern such as *.csv.", "*")
    if re.search(r"\[(?!!?\]?[^\]]*\])", pattern):
        message = f"'{pattern}' is not a valid pattern: [ is not closed"
        raise value_error(message, "Close the set, such as [0-9].", "*")
    if any("**" in part and part != "**" for part in pattern.split("/")):
        message = f"'{pattern}' is not a valid pattern: ** must be alone between slashes"
        raise value_error(message, "Write it as folder/**/*.csv.", "*")
    return pattern


Regex = Annotated[str, AfterValidator(check_regex)]
Glob = Annotated[str, AfterValidator(check_glob), text_schema("*.csv", "A pattern with * and ?.")]
