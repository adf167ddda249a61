"""The client imports fast and loads no heavy modules."""

import subprocess
import sys

HEAVY = {"pandas", "pyspark", "pydantic", "sqlalchemy", "msgspec", "httpx", "typer", "rich"}
# Costly parts of the standard library that are imported where they are used.
LATE = {"http.client", "ssl", "logging", "dataclasses", "inspect", "email", "asyncio"}


def test_importing_the_client_loads_no_heavy_module_and_nothing_else_of_floe() -> None:
    code = "import sys; before = set(sys.modules); import floe.client; print(*set(sys.modules) - before)"  # noqa: E501
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not (HEAVY | LATE) & loaded
    own = {name for name in loaded if name.startswith("floe.")}
    allowed = ("floe.client", "floe.clock", "floe.errors")
    assert all(name.startswith(allowed) for name in own), own


def test_reporting_loads_no_heavy_module(host: object) -> None:
    code = (
        "import sys; from floe.client import register_dataset as report; "
        "report('a.b'); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY & set(done.stdout.split())
