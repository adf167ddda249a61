"""The names that things may have, and the names of Python functions and modules."""

from typing import Annotated

from pydantic import AfterValidator

from floe.spec.wrong import matching

check_dataset_name = matching(
    r"[a-z_][a-z0-9_]*(?:\.[a-z0-9_]+)+",
    "a dataset name",
    "Write it as schema.table in lower case, such as credit.exposure.",
    "schema.table",
)
check_process_name = matching(
    r"[a-z_][a-z0-9_]*(?:\.[a-z0-9_]+)*",
    "a process name",
    "Use lower-case letters, digits, _ and dots, such as credit.exposure_daily.",
    "process",
)
DatasetName = Annotated[str, AfterValidator(check_dataset_name)]
ProcessName = Annotated[str, AfterValidator(check_process_name)]
Name = Annotated[
    str,
    AfterValidator(matching(r"[A-Za-z0-9_]+", "a name", "Use letters, digits and _ only.", "name")),
]
ProfileName = Annotated[
    str,
    AfterValidator(
        matching(r"[A-Za-z0-9_-]+", "a name", "Use letters, digits, _ and - only.", "default")
    ),
]
Alias = Annotated[
    str,
    AfterValidator(
        matching(
            r"[A-Za-z_][A-Za-z0-9_]*",
            "an alias",
            "Start with a letter; use letters, digits and _ only: SQL calls it by this name.",
            "alias",
        )
    ),
]
ProjectName = Annotated[
    str,
    AfterValidator(
        matching(
            r"[A-Za-z0-9][A-Za-z0-9_-]*",
            "a project name",
            "Use letters, digits, - and _, such as credit-risk.",
            "project",
        )
    ),
]
SqlName = Annotated[
    str,
    AfterValidator(
        matching(r"[A-Za-z_][A-Za-z0-9_]*", "a name", "Use letters, digits and _ only.", "lake")
    ),
]
Memory = Annotated[
    str,
    AfterValidator(
        matching(r"[1-9][0-9]*[mg]", "an amount of memory", "Write it as 512m or 4g.", "4g")
    ),
]
Email = Annotated[
    str,
    AfterValidator(
        matching(
            r"[^@\s]+@[^@\s]+",
            "an e-mail address",
            "Write it as team@example.com.",
            "team@example.com",
        )
    ),
]
check_function = matching(
    r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*[.:][A-Za-z_]\w*",
    "a function",
    "Write it as module.function, such as risk.scoring.rate.",
    "module.function",
)
FunctionRef = Annotated[str, AfterValidator(check_function)]
ModuleRef = Annotated[
    str,
    AfterValidator(
        matching(
            r"\.*[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*",
            "a module",
            "Write it as package.module, such as orchestration.assets.bronze.",
            "package.module",
        )
    ),
]
