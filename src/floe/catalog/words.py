"""Cut text into words: the same way for what is indexed and for what is asked, on every store."""

import re
import unicodedata

# Longer than any honest name; what is cut off would only fill the index.
LONGEST_WORD = 100

_CHUNK = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def split_words(text: str) -> list[str]:
    """Split at everything that is no letter or digit, and at camelCase; fold case and accents."""
    return [_fold(part) for chunk in _chunks(text) for part in _CAMEL.split(chunk)]


def index_words(text: str) -> list[str]:
    """Split into words, and keep camelCase in one piece too: people type it either way."""
    words: list[str] = []
    for chunk in _chunks(text):
        # Most chunks are in lower case, and asking is cheaper than looking for where to split.
        if not chunk.islower() and _CAMEL.search(chunk):
            words += [_fold(part) for part in _CAMEL.split(chunk)]
        words.append(_fold(chunk))
    return words


def _chunks(text: str) -> list[str]:
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    return _CHUNK.findall(text)


def _fold(word: str) -> str:
    return word.casefold()[:LONGEST_WORD]
