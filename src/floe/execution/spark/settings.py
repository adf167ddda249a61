"""The settings of a project's Spark server, from its platform. Pure; secrets stay hidden."""

import hashlib
import json
import re
from importlib.metadata import version
from urllib.parse import urlsplit

from floe import __version__
from floe.execution.jars import SPARK_PACKAGES
from floe.execution.site import Site
from floe.execution.spark.lake import Settings, lake_settings, session_lake_settings
from floe.execution.spark.sizing import default_cores, default_memory
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
# How long a session may do nothing. That of a client that was killed keeps its views so long.
SESSION_TIMEOUT = "4h"


def server_settings(site: Site, profile: str | None = None) -> Settings:
    """Return all settings of the server, secrets as references. The platform has the last word."""
    compute = site.compute(profile)
    settings: Settings = {
        **ALWAYS,
        "spark.app.name": f"floe {site.spec.name}",
        "spark.connect.session.manager.defaultSessionTimeout": SESSION_TIMEOUT,
        **_computing(compute),
        **lake_settings(site),
        **_file_systems(site),
        **compute.conf,
    }
    return {**settings, "spark.redaction.regex": _redaction(settings)}


def session_settings(site: Site, profile: str | None = None) -> dict[str, str]:
    """Return what every session on a server of somebody else starts with."""
    own = {key: site.reveal(value) for key, value in site.compute(profile).conf.items()}
    return {**SESSION, **session_lake_settings(site), **own}


def master(compute: Compute) -> str:
    """Return Spark's master: that of the platform, else this machine's cores."""
    return compute.url or f"local[{compute.cores or default_cores()}]"


def driver_memory(compute: Compute) -> str:
    """Return how much memory the server's JVM may take."""
    written = compute.conf.get("spark.driver.memory")
    return compute.memory or (written if isinstance(written, str) else default_memory())


def is_local(compute: Compute) -> bool:
    """Tell whether the server computes by itself, without a cluster."""
    return compute.url is None or compute.url.startswith("local")


def is_foreign(compute: Compute) -> bool:
    """Tell whether the server is somebody else's: floe only connects to it."""
    return compute.url is not None and compute.url.startswith("sc://")


def on_loopback(compute: Compute) -> bool:
    """Tell whether the cluster's master is on this machine."""
    host = urlsplit(compute.url or "").hostname
    return is_local(compute) or host in (LOOPBACK, "localhost", "::1")


def fingerprint(site: Site, profile: str | None = None) -> str:
    """Return a hash of what a server was declared to be: another hash needs another server.

    Only of what is declared: what the machine offers differs between callers in containers.
    """
    storage = {name: one.model_dump(mode="json") for name, one in site.platform.storage.items()}
    declared = {
        "root": str(site.root.resolve()),
        "compute": site.compute(profile).model_dump(mode="json"),
        "lake": site.platform.lake.model_dump(mode="json"),
        "storage": storage,
        "packages": SPARK_PACKAGES,
        "versions": [__version__, version("pyspark")],
    }
    return hashlib.sha256(json.dumps(declared, sort_keys=True).encode()).hexdigest()[:16]


def _computing(compute: Compute) -> Settings:
    settings: Settings = {"spark.driver.memory": driver_memory(compute)}
    if is_local(compute):
        cores = compute.cores or default_cores()
        settings["spark.sql.shuffle.partitions"] = str(2 * cores)
        # One machine: what one task more costs shows in every small query.
        settings["spark.sql.sources.parallelPartitionDiscovery.threshold"] = "1024"
        # Nobody else on this machine may speak with the driver's ports. Spark makes the secret.
        settings["spark.authenticate"] = "true"
    if on_loopback(compute):
        settings["spark.driver.host"] = LOOPBACK
        settings["spark.driver.bindAddress"] = LOOPBACK
    return settings


def _file_systems(site: Site) -> Settings:
    """Return the options of all storage profiles; where two disagree, the project's own stands."""
    profiles = site.platform.storage
    ordered = sorted(profiles, key=lambda name: name == site.spec.storage)
    written = [profiles[name].options for name in ordered]
    return {_hadoop(key): value for options in written for key, value in options.items()}


def _hadoop(key: str) -> str:
    return key if key.startswith("spark.") else f"spark.hadoop.{key}"


def _redaction(settings: Settings) -> str:
    """Return what Spark is to hide: what sounds secret, and what is."""
    secret = [re.escape(key) for key, value in settings.items() if isinstance(value, SecretRef)]
    return "|".join([HIDDEN, *secret])
