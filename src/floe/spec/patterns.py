"""Patterns of files and names."""

import re
from typing import Annotated

from pydantic import AfterValidator

from floe.spec.wrong import text_schema, wrong


def check_regex(pattern: str) -> str:
    """Accept what Python's re compiles."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        hint = 'Correct it; a literal dot or bracket needs a backslash: "\\.".'
        raise wrong(f"'{pattern}' is not a regular expression: {error}", hint, ".*") from None
    return pattern


def check_glob(pattern: str) -> str:
    """Accept a pattern with * and ?, [sets] that are closed, and ** as a whole folder."""
    if not pattern.strip():
        raise wrong("the pattern is empty", "Write one such as *.csv.", "*")
    if re.search(r"\[(?!!?\]?[^\]]*\])", pattern):
        message = f"'{pattern}' is not a pattern: a [ is not closed"
        raise wrong(message, "Close the set, such as [0-9].", "*")
    if any("**" in part and part != "**" for part in pattern.split("/")):
        message = f"'{pattern}' is not a pattern: ** must stand alone between slashes"
        raise wrong(message, "Write it as folder/**/*.csv.", "*")
    return pattern


Regex = Annotated[str, AfterValidator(check_regex)]
Glob = Annotated[str, AfterValidator(check_glob), text_schema("*.csv", "A pattern with * and ?.")]
