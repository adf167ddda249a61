"""Say in plain words what is wrong with a file as YAML."""

import yaml

from floe.spec.yaml_nodes import MAX_DEPTH

TOO_DEEP = (
    f"nested deeper than {MAX_DEPTH} levels, or an alias that contains itself",
    "Flatten it, or check the aliases.",
)
TOO_MANY = (
    "too many values once its aliases are expanded",
    "Use fewer aliases, or split the file with an include.",
)


def too_large(size: int, limit: int) -> tuple[str, str]:
    return (
        f"{size:,} bytes long, more than the {limit:,} that one file may hold",
        "Split it with an include, such as datasets: [datasets/*.yaml].",
    )


def error_line(error: yaml.YAMLError, text: str) -> int:
    """The line of the problem; for something never closed, the line where it was opened."""
    last = max(len(text.splitlines()), 1)
    problem, context = (getattr(error, f"{kind}_mark", None) for kind in ("problem", "context"))
    if context is not None and (problem is None or problem.line >= last):
        problem = context
    return min(problem.line + 1, last) if problem is not None else 1


def explain_syntax(error: yaml.YAMLError, text: str, line: int) -> tuple[str, str]:
    """Say what is wrong on a line, and what to do."""
    problem = getattr(error, "problem", None) or str(error).split("\n", maxsplit=1)[0]
    lines = text.splitlines()
    written = lines[line - 1] if 0 < line <= len(lines) else ""
    return f"not valid YAML: {problem.rstrip('.')}", _syntax_hint(problem, written)


def _syntax_hint(problem: str, written: str) -> str:
    if "another document" in problem or "single document" in problem:
        return "Keep one document in the file: remove the '---' line."
    if "\t" in written[: len(written) - len(written.lstrip())]:
        return "Indent with spaces, not tabs."
    if "cannot start any token" in problem:
        return "Put text that begins with @, % or ` in quotes."
    if "${" in written:
        return 'Put the value in quotes: "${NAME:default}".'
    if "mapping values are not allowed" in problem:
        return "Check the indentation, and put text that holds ': ' in quotes."
    return "Check the indentation, quotes and brackets around this line."
