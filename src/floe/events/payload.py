"""How an event's body is kept: compressed, beside the name of its codec."""

import threading

import zstandard

ZSTD, PLAIN = "zstd", "json"
LEVEL = 3
# Compressing a very small body makes it larger.
SMALLEST = 200
LARGEST = 64 * 1024 * 1024


class _Local(threading.local):
    """One compressor a thread: they are not safe to share, and slow to make."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=LEVEL)
        self.decompressor = zstandard.ZstdDecompressor()


_local = _Local()


def compress(body: bytes) -> tuple[bytes, str]:
    """Return a body as it is stored, and its codec."""
    if len(body) < SMALLEST:
        return body, PLAIN
    return _local.compressor.compress(body), ZSTD


def decompress(payload: bytes, codec: str) -> bytes:
    """Return a stored body as it came."""
    if codec == PLAIN:
        return payload
    return _local.decompressor.decompress(payload, max_output_size=LARGEST)
