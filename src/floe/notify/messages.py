"""Messages, delivery errors, and masking of secrets in errors and logs."""

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from floe.errors import FloeError
from floe.spec.secrets import SecretRef

Severity = Literal["info", "warning", "error"]


@dataclass(frozen=True)
class Message:
    """A notification."""

    title: str
    body: str = ""
    severity: Severity = "warning"
    links: Mapping[str, str] = field(default_factory=dict)
    """URLs by label."""

    @property
    def headline(self) -> str:
        """Return the title as one line, for headers."""
        return " ".join(self.title.split())

    @property
    def text(self) -> str:
        """Return the text below the title: the body, then the links."""
        links = "\n".join(f"{label}: {url}" for label, url in self.links.items())
        return "\n\n".join(part for part in (self.body.strip(), links) if part)


class NotDeliveredError(FloeError):
    """A message was not delivered. The error contains no secrets."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}.")


Reveal = Callable[[str | SecretRef], str]
"""Resolves a secret; plain text is returned unchanged."""

_MASK = "***"
# Splits URLs: a token may be any part of one, and errors may quote that part alone.
_BETWEEN = re.compile(r"[/:@?&=#;,\s]+")
_SHORTEST = 3


class Masking:
    """Remembers revealed secrets, and masks them in messages of other libraries."""

    def __init__(self, reveal: Reveal) -> None:
        self._reveal = reveal
        self._secrets: set[str] = set()

    def reveal(self, value: str | SecretRef) -> str:
        """Resolve a value and remember it. Plain text may be a secret too."""
        revealed = self._reveal(value)
        pieces = [piece for piece in _BETWEEN.split(revealed) if len(piece) >= _SHORTEST]
        self._secrets |= {revealed.strip(), *pieces} - {""}
        return revealed

    def mask(self, text: str) -> str:
        """Return the text with revealed values masked."""
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, _MASK)
        return text

    @contextmanager
    def over(self, loggers: Sequence[str]) -> Iterator[None]:
        """Mask revealed values in the output of these loggers, within the block."""
        targets = [logging.getLogger(name) for name in loggers]
        for logger in targets:
            logger.addFilter(self._mask_record)
        try:
            yield
        finally:
            for logger in targets:
                logger.removeFilter(self._mask_record)

    def _mask_record(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = self.mask(record.getMessage()), ()
        return True
