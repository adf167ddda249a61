"""Jobs: what a schedule, a sensor or a person starts as one."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from floe.spec.base import SpecModel
from floe.spec.names import check_function
from floe.spec.nearby import suggest
from floe.spec.values import AnyValue
from floe.spec.wrong import wrong

MAINTENANCE = ("analyze", "compact", "vacuum")
"""floe's own functions, which an ops job may call by their bare name."""


def _check_selector(text: str) -> str:
    if not text.strip() or text.count("(") != text.count(")"):
        message = f"'{text}' is not a selection"
        raise wrong(message, "Write one such as group:bronze or bronze.*.", "*")
    return text


def _check_target(name: str) -> str:
    if name in MAINTENANCE:
        return name
    if "." not in name and ":" not in name:
        hint = suggest(name, MAINTENANCE, "Write it as module.function.")
        raise wrong(f"'{name}' is not a function", hint, "vacuum")
    return check_function(name)


Selector = Annotated[str, AfterValidator(_check_selector)]
Target = Annotated[str, AfterValidator(_check_target)]


class Executor(SpecModel):
    """What runs the steps of a job."""

    type: Literal["in_process", "multiprocess"] = "in_process"
    """One after the other in one process, or several processes at once."""
    max_concurrent: Annotated[int, Field(ge=1)] | None = None
    """With `multiprocess`: how many steps at once."""


def _type_alone(value: Any) -> Any:
    return {"type": value} if isinstance(value, str) else value


ExecutorOrType = Annotated[
    Executor,
    BeforeValidator(
        _type_alone, json_schema_input_type=Literal["in_process", "multiprocess"] | Executor
    ),
]


class BatchJob(SpecModel):
    """Makes a selection of assets."""

    type: Literal["batch"]
    """`batch`"""
    selection: Annotated[tuple[Selector, ...], Field(min_length=1)]
    """Which assets: group:x, tag:x, asset:x, patterns, +a, a+, a+2, and, or, not."""
    description: str = ""
    """What the job is for."""
    tags: dict[str, str] = Field(default_factory=dict)
    """Tags put on its runs."""
    executor: ExecutorOrType | None = None
    """What runs its steps: in_process, multiprocess, or {type, max_concurrent}."""


class OpsJob(SpecModel):
    """Calls a function: maintenance such as vacuum, compact and analyze."""

    type: Literal["ops"]
    """`ops`"""
    target_function: Target
    """The function or Dagster op, as module.function, or vacuum, compact or analyze."""
    args: dict[str, AnyValue] = Field(default_factory=dict)
    """What it is called with; of a Dagster op its config and inputs."""
    description: str = ""
    """What the job is for."""
    tags: dict[str, str] = Field(default_factory=dict)
    """Tags put on its runs."""


Job = Annotated[BatchJob | OpsJob, Field(discriminator="type")]
