"""References to secrets: `secret://env/NAME`, `secret://file/NAME`.

A reference may be printed, compiled and compared. The secret itself never appears in a
model, a message or a compiled file.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from floe.errors import FloeError
from floe.spec.base import value_error

_PREFIX = "secret://"
_REFERENCE = re.compile(r"secret://(env|file)/([A-Za-z0-9_][A-Za-z0-9_.-]*)")
_HINT = "Write secret://env/NAME or secret://file/NAME, and store the secret there."


class SecretNotFoundError(FloeError):
    """A required secret does not exist."""

    def __init__(self, reference: str, reason: str) -> None:
        super().__init__(f"{reference} not found: {reason}.")


@dataclass(frozen=True)
class SecretRef:
    """A reference to a secret."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{_PREFIX}{self.kind}/{self.name}"

    def resolve(self, environ: Mapping[str, str], folder: Path) -> str:
        """Fetch the secret, for immediate use only."""
        if self.kind == "env":
            return self._from_environment(environ)
        path = folder / self.name
        if not path.is_file():
            raise SecretNotFoundError(str(self), f"the file {path} does not exist")
        return path.read_text(encoding="utf-8").rstrip("\r\n")

    def _from_environment(self, environ: Mapping[str, str]) -> str:
        if self.name not in environ:
            raise SecretNotFoundError(str(self), f"set the environment variable {self.name}")
        return environ[self.name]


def reveal(value: str | SecretRef, environ: Mapping[str, str], folder: Path) -> str:
    """Fetch a secret for immediate use; return plain text unchanged."""
    return value if isinstance(value, str) else value.resolve(environ, folder)


def parse_secret(value: object) -> SecretRef:
    """Parse a reference. Errors never repeat the text, because it may be the secret."""
    if isinstance(value, SecretRef):
        return value
    match = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise value_error("must be a reference to a secret", _HINT, "secret://env/NAME")
    return SecretRef(match[1], match[2])


def parse_text_or_secret(value: object) -> str | SecretRef:
    """Parse a reference if the text starts with secret://, else return the text."""
    if isinstance(value, SecretRef) or (isinstance(value, str) and value.startswith(_PREFIX)):
        return parse_secret(value)
    if not isinstance(value, str):
        raise PydanticCustomError("string_type", "Input should be a valid string")
    return str(value)


Secret = Annotated[
    SecretRef,
    PlainValidator(parse_secret),
    PlainSerializer(str, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": "^secret://(env|file)/"}),
]
TextOrSecret = Annotated[
    str | SecretRef,
    PlainValidator(parse_text_or_secret),
    PlainSerializer(str, when_used="json"),
    WithJsonSchema({"type": "string"}),
]
