"""One line of a benchmark: what was measured against what was promised."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Result:
    """A ratio taken in one run, and the target it has to meet."""

    name: str
    measured: float
    target: float
    unit: str = "x"
    better: Literal["lower", "higher"] = "lower"
    note: str = ""

    @property
    def met(self) -> bool:
        if self.better == "lower":
            return self.measured <= self.target
        return self.measured >= self.target
