"""A job that is killed at any moment of its reports loses none that it had made, doubles none."""

import os
import subprocess
import sys

import pytest

from floe.client import Client
from tests.client.fake_api import FakeApi

# Each starts programs of its own.
pytestmark = pytest.mark.slow

# Reports three datasets, and is killed before its step number so-and-so: whatever opens, writes,
# syncs, renames, removes, locks or sends is a step.
JOB = """
import os, signal, sys
import hashlib, http.client, json, logging, urllib.parse
from floe.client import Client

STEPS = {"open", "os.rename", "os.remove", "os.mkdir", "os.truncate", "os.utime",
         "fcntl.flock", "http.client.connect", "http.client.send"}
left = int(sys.argv[1])

def step(name):
    global left
    if name in STEPS or name in ("write", "fsync"):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

def stepping(name, work):
    def stepped(number, *rest):
        if number > 2:
            step(name)
        return work(number, *rest)
    return stepped

client = Client(warn=lambda _: None)
os.write, os.fsync = stepping("write", os.write), stepping("fsync", os.fsync)
sys.addaudithook(lambda name, _: step(name))
for number in range(3):
    client.register_dataset(f"night.t{number}", "1", occurred_at="2026-09-01T06:00:00Z")
    os.write(1, b"%d" % number)
"""
MOST_STEPS = 300
# Every step in the long form, some of them otherwise.
STRIDE = 1 if "FLOE_SOAK_ROUNDS" in os.environ else 5


def run_until(step: int) -> tuple[bool, list[str]]:
    """Run the job up to a step: was it killed there, and which reports had it made?"""
    done = subprocess.run(
        [sys.executable, "-c", JOB, str(step)], stdout=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode in (0, -9)
    return done.returncode == -9, [f"night.t{number}" for number in done.stdout]


@pytest.mark.soak
@pytest.mark.parametrize("api_is_up", [True, False])
def test_a_job_killed_at_any_step(
    api_is_up: bool, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed, step = True, 1
    while killed:
        monkeypatch.setenv("FLOE_SPOOL", f"spool_{step}")
        api.taken.clear()
        api._hashes.clear()
        api.gate = (lambda: None) if api_is_up else (lambda: (503, {}))
        killed, made = run_until(step)
        api.gate = lambda: None
        Client().deliver()
        found = [event["outputs"][0]["name"] for event in api.taken]
        assert found == sorted(set(found)), f"killed at step {step}"
        assert set(made) <= set(found), f"killed at step {step}"
        assert Client().spool.count_waiting() == 0
        step += STRIDE
        assert step < MOST_STEPS
    assert made == found == ["night.t0", "night.t1", "night.t2"]
    assert step > 20
