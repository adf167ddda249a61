"""A result of a benchmark: the measured value and its target."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Result:
    """A ratio measured in one run, and its target."""

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
