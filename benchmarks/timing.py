"""Time functions in turns."""

import gc
import time
from collections.abc import Callable


def fastest(repetitions: int, *works: Callable[[], object]) -> list[float]:
    """Time each function in turns; return the best time of each."""
    best = [float("inf")] * len(works)
    for _ in range(repetitions):
        for index, work in enumerate(works):
            gc.collect()
            start = time.perf_counter()
            work()
            best[index] = min(best[index], time.perf_counter() - start)
    return best
