"""Java's properties files: settings that must not stand on a command line, where all can read."""

import os
from collections.abc import Mapping
from pathlib import Path

from floe.settings import make_private_folder

SPECIAL = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
IN_KEYS = {**SPECIAL, " ": "\\ ", "=": "\\=", ":": "\\:", "#": "\\#", "!": "\\!"}


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, at no moment half of it or open to others."""
    make_private_folder(path.parent)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def to_properties(settings: Mapping[str, str]) -> str:
    """Return the settings as Java reads them, a line each."""
    lines = (f"{_escape(key, IN_KEYS)}={_value(text)}\n" for key, text in settings.items())
    return "".join(lines)


def _value(text: str) -> str:
    # Java takes the blanks before a value for layout.
    kept = len(text) - len(text.lstrip(" "))
    return "\\ " * kept + _escape(text[kept:], SPECIAL)


def _escape(text: str, special: Mapping[str, str]) -> str:
    return "".join(special.get(character, character) for character in text)
