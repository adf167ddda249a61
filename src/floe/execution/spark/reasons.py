"""Say in one sentence what Spark says in a page: without Java, conditions and stack traces."""

import re
from pathlib import PurePosixPath

JVM = "JVM stacktrace:"
LONGEST = 500
# Spark puts its condition before a message and the SQLSTATE behind it; Java puts the class before.
_CONDITION = re.compile(r"^\s*\[[A-Z0-9_.]+\]\s*")
_CLASS = re.compile(r"^\s*\(?(?:[a-z_$][\w$]*\.)+[A-Z]\w*(?:\$\w+)?\)?:?\s*")
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w{5}.*$", re.DOTALL)
_CAUSE = re.compile(r"^Caused by: (?:[\w$]+\.)+[\w$]+(?:: (.+))?$", re.MULTILINE)
_FILE = re.compile(r"reading file (file:\S+?)\.?(?:\s|$)")
_SQLITE = re.compile(r"SQL error or missing database \((.+)\)")
_URL = re.compile(r"file:/+(\S*/)?")
_NAMELESS = {
    "EOFException": "the file ends too early",
    "NullPointerException": "it is damaged",
}


def spark_reason(error: BaseException) -> str:
    """Return the one sentence of a Spark error that tells people what happened."""
    text = str(error)
    if file := _FILE.search(text):
        # The innermost cause says what is wrong with the file.
        name = PurePosixPath(file[1]).name
        cause = _root_cause(text)
        return f"{name} cannot be read: {cause}" if cause else f"{name} cannot be read"
    said = _plain(text.partition(JVM)[0])
    if said.startswith("Job aborted"):
        said = _root_cause(text) or said
    return said or type(error).__name__


def _root_cause(text: str) -> str:
    causes = [_plain(cause) for cause in _CAUSE.findall(text)]
    told = [cause for cause in causes if cause and not cause.startswith("Exception thrown in")]
    if not told:
        return next((words for name, words in _NAMELESS.items() if name in text), "")
    return told[-1]


def _plain(text: str) -> str:
    """Return the first sentence-bearing line without conditions, class names and file URLs."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    line = _SQLSTATE.sub("", line)
    before = None
    while before != line:
        before, line = line, _CLASS.sub("", _CONDITION.sub("", line))
    line = _SQLITE.sub(r"\1", line)
    return _URL.sub("", line).strip()[:LONGEST].rstrip(". ")
