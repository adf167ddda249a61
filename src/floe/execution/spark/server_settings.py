"""Settings of a project's Spark server, from platform.yaml; secrets stay hidden."""

import hashlib
import json
import os
import re
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

from floe import __version__
from floe.execution.jars import SPARK_PACKAGES
from floe.execution.site import Site
from floe.execution.spark.lake_catalog import Settings, lake_settings, session_lake_settings
from floe.spec.platform import Compute
from floe.spec.secrets import SecretRef

LOOPBACK = "127.0.0.1"
HIDDEN = r"(?i)secret|password|passwd|credential|token|access[.]?key|api[.]?key"
SESSION = {"spark.sql.session.timeZone": "UTC"}
ALWAYS = {
    **SESSION,
    "spark.ui.enabled": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.connect.grpc.binding.address": LOOPBACK,
}
# Idle time-out of a session. The session of a killed client keeps its views until then.
SESSION_TIMEOUT = "4h"


def server_settings(site: Site, profile: str | None = None) -> Settings:
    """Return all settings of the server; compute.conf of platform.yaml wins."""
    compute = site.compute(profile)
    settings: Settings = {
        **ALWAYS,
        "spark.app.name": f"floe {site.spec.name}",
        "spark.connect.session.manager.defaultSessionTimeout": SESSION_TIMEOUT,
        **_compute_settings(compute),
        **lake_settings(site),
        **_file_systems(site),
        **compute.conf,
    }
    return {**settings, "spark.redaction.regex": _redaction(settings)}


def session_settings(site: Site, profile: str | None = None) -> dict[str, str]:
    """Return the settings of every session on a server that floe does not manage."""
    own = {key: site.reveal(value) for key, value in site.compute(profile).conf.items()}
    return {**SESSION, **session_lake_settings(site), **own}


def master(compute: Compute) -> str:
    """Return Spark's master: from the platform, else local with the available cores."""
    return compute.url or f"local[{compute.cores or default_cores()}]"


def driver_memory(compute: Compute) -> str:
    """Return the memory limit of the server's JVM."""
    written = compute.conf.get("spark.driver.memory")
    return compute.memory or (written if isinstance(written, str) else default_memory())


def is_local(compute: Compute) -> bool:
    """Tell whether the server runs without a cluster."""
    return compute.url is None or compute.url.startswith("local")


def is_foreign(compute: Compute) -> bool:
    """Tell whether floe only connects to the server and does not manage it."""
    return compute.url is not None and compute.url.startswith("sc://")


def on_loopback(compute: Compute) -> bool:
    """Tell whether the cluster's master is on this machine."""
    host = urlsplit(compute.url or "").hostname
    return is_local(compute) or host in (LOOPBACK, "localhost", "::1")


def fingerprint(site: Site, profile: str | None = None) -> str:
    """Return a hash of a server's declared settings; a change requires a restart.

    Only declared values count, because defaults from the machine differ between containers.
    """
    storage = {
        name: storage_profile.model_dump(mode="json")
        for name, storage_profile in site.platform.storage.items()
    }
    declared = {
        "root": str(site.root.resolve()),
        "compute": site.compute(profile).model_dump(mode="json"),
        "lake": site.platform.lake.model_dump(mode="json"),
        "storage": storage,
        "packages": SPARK_PACKAGES,
        "versions": [__version__, version("pyspark")],
    }
    return hashlib.sha256(json.dumps(declared, sort_keys=True).encode()).hexdigest()[:16]


def _compute_settings(compute: Compute) -> Settings:
    settings: Settings = {"spark.driver.memory": driver_memory(compute)}
    if is_local(compute):
        cores = compute.cores or default_cores()
        settings["spark.sql.shuffle.partitions"] = str(2 * cores)
        # On one machine, an extra task noticeably slows every small query.
        settings["spark.sql.sources.parallelPartitionDiscovery.threshold"] = "1024"
        # Keeps other users of this machine off the driver's ports. Spark generates the secret.
        settings["spark.authenticate"] = "true"
    if on_loopback(compute):
        settings["spark.driver.host"] = LOOPBACK
        settings["spark.driver.bindAddress"] = LOOPBACK
    return settings


def _file_systems(site: Site) -> Settings:
    """Return the options of all storage profiles; the project's own profile wins."""
    profiles = site.platform.storage
    ordered = sorted(profiles, key=lambda name: name == site.spec.storage)
    written = [profiles[name].options for name in ordered]
    return {_hadoop(key): value for options in written for key, value in options.items()}


def _hadoop(key: str) -> str:
    return key if key.startswith("spark.") else f"spark.hadoop.{key}"


def _redaction(settings: Settings) -> str:
    """Return the regex of settings to hide: suspicious names and declared secrets."""
    secret = [re.escape(key) for key, value in settings.items() if isinstance(value, SecretRef)]
    return "|".join([HIDDEN, *secret])


GIB = 1024**3
MIN_MEMORY, MAX_MEMORY = GIB, 8 * GIB
# Resource limits of a container: control groups version 2 first, then version 1.
MEMORY_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")
CPU_LIMIT = "cpu.max"
OLD_CPU_LIMIT = ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")
CGROUPS = Path("/sys/fs/cgroup")


def default_cores(cgroups: Path = CGROUPS) -> int:
    """Return how many cores this process may use, which may be fewer than exist."""
    allowed = _affinity()
    limit = _cpu_limit(cgroups)
    return allowed if limit is None else max(1, min(allowed, int(limit)))


def default_memory(cgroups: Path = CGROUPS) -> str:
    """Return a third of the available memory, at least 1g and at most 8g."""
    return memory_of(available_memory(cgroups))


def memory_of(available: int) -> str:
    """Return the JVM's share of the available bytes, in Java's notation."""
    return f"{min(MAX_MEMORY, max(MIN_MEMORY, available // 3)) // 1024**2}m"


def available_memory(cgroups: Path = CGROUPS) -> int:
    """Return the memory in bytes: of the machine, or of the container if smaller."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [limit for name in MEMORY_LIMITS if (limit := _read_limit(cgroups / name))]
    return min([machine, *limits])


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu_limit(cgroups: Path) -> float | None:
    quota, period = None, None
    with suppress(OSError, ValueError):
        quota, period = map(int, (cgroups / CPU_LIMIT).read_text().split())
    if quota is None:
        quota, period = (_read_limit(cgroups / name) for name in OLD_CPU_LIMIT)
    return quota / period if quota and period and quota > 0 else None


def _read_limit(path: Path) -> int | None:
    """Read a limit from a file; None if there is no limit."""
    with suppress(OSError, ValueError):
        return int(path.read_text())
    return None
