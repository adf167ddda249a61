"""Write a tree as JSON and read it back, keeping numbers as they were written.

Plain numbers and truth values become JSON's own, digit for digit, so that 1.10 does not turn
into 1.1 on the way. Keys are sorted: the same tree always gives the same bytes.
"""

import json
from typing import Any

from floe.spec.yaml_tree import NUMBER, Plain, Tree


def dump_tree(value: Tree, indent: int = 0) -> str:
    """Write a tree as indented JSON."""
    inner = "\n" + "  " * (indent + 1)
    outer = "\n" + "  " * indent
    if isinstance(value, dict) and value:
        items = (f"{_text(key)}: {dump_tree(value[key], indent + 1)}" for key in sorted(value))
        return "{" + inner + f",{inner}".join(items) + outer + "}"
    if isinstance(value, list) and value:
        items = (dump_tree(item, indent + 1) for item in value)
        return "[" + inner + f",{inner}".join(items) + outer + "]"
    if isinstance(value, Plain) and (value in ("true", "false") or NUMBER.fullmatch(value)):
        return str(value)
    return _text(value)


def load_tree(text: str) -> Any:
    """Read what dump_tree wrote."""
    return _marked(json.loads(text, parse_int=Plain, parse_float=Plain))


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _marked(value: Any) -> Any:
    if isinstance(value, bool):
        return Plain("true" if value else "false")
    if isinstance(value, dict):
        return {key: _marked(item) for key, item in value.items()}
    return [_marked(item) for item in value] if isinstance(value, list) else value
