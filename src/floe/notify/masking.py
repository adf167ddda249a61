"""Reveal secrets to the one who sends, and keep them out of what is said about it."""

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from floe.spec.secrets import SecretRef

Reveal = Callable[[str | SecretRef], str]
"""Fetches a secret for immediate use; plain text is itself."""

_MASK = "***"
# What addresses are made of: a token may stand in any of their parts, and be quoted alone.
_BETWEEN = re.compile(r"[/:@?&=#;,\s]+")
_SHORTEST = 3


class Masking:
    """Remembers what was revealed, to take it out of messages of others."""

    def __init__(self, reveal: Reveal) -> None:
        self._reveal = reveal
        self._secrets: set[str] = set()

    def reveal(self, value: str | SecretRef) -> str:
        """Fetch a value for immediate use. Plain text may be a secret as well: it is kept too."""
        revealed = self._reveal(value)
        pieces = [piece for piece in _BETWEEN.split(revealed) if len(piece) >= _SHORTEST]
        self._secrets |= {revealed.strip(), *pieces} - {""}
        return revealed

    def mask(self, text: str) -> str:
        """Return the text without anything that was revealed."""
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, _MASK)
        return text

    @contextmanager
    def over(self, loggers: Sequence[str]) -> Iterator[None]:
        """Take out of what these loggers write what was revealed."""
        found = [logging.getLogger(name) for name in loggers]
        for logger in found:
            logger.addFilter(self._mask_record)
        try:
            yield
        finally:
            for logger in found:
                logger.removeFilter(self._mask_record)

    def _mask_record(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = self.mask(record.getMessage()), ()
        return True
