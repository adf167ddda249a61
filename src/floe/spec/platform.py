"""The model of platform.yaml: where a project runs, one file per environment."""

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from floe.spec.base import SpecModel, value_error
from floe.spec.dates import BUILT_IN, DEFAULT_RULES, GROUPS, DateRules
from floe.spec.names import Email, Memory, ProfileName, SqlName, check_regex
from floe.spec.secrets import Secret, TextOrSecret
from floe.spec.values import Duration, parse_duration

_CLUSTERS = ("sc://", "spark://", "k8s://", "yarn", "local")


def _check_spark_url(url: str) -> str:
    if not url.startswith(_CLUSTERS):
        hint = "Write sc://host:15002, spark://host:7077, k8s://host:443, yarn or local[4]."
        raise value_error(f"'{url}' is not a Spark URL", hint, "sc://host:15002")
    return url


class Compute(SpecModel):
    """A Spark server or cluster."""

    url: Annotated[str, AfterValidator(_check_spark_url)] | None = None
    """Spark Connect server (sc://) or cluster master; by default floe starts its own server."""
    token: Secret | None = None
    """Token for the Spark Connect server."""
    cores: Annotated[int, Field(ge=1)] | None = None
    """Cores of the embedded server; by default all cores of the machine."""
    memory: Memory | None = None
    """Memory of the embedded server, such as 4g; by default a share of the machine's memory."""
    packages: tuple[str, ...] = ()
    """Additional Maven packages, as group:artifact:version."""
    conf: dict[str, TextOrSecret] = Field(default_factory=dict)
    """Spark settings."""


class LakeCatalog(SpecModel):
    """The Iceberg catalog of the lake."""

    type: Literal["jdbc", "rest", "hive", "glue", "nessie", "hadoop"] = "jdbc"
    """Type of catalog."""
    uri: str | None = None
    """URI of the catalog; the embedded one is a SQLite file in .floe."""
    user: str | None = None
    """User name."""
    password: Secret | None = None
    """Password."""
    token: Secret | None = None
    """Token for a REST catalog."""
    options: dict[str, TextOrSecret] = Field(default_factory=dict)
    """Additional properties, passed to Iceberg."""


class Lake(SpecModel):
    """The lake: where floe stores tables, and the namespace of its datasets."""

    name: SqlName = "lake"
    """Name of the lake in Spark and in lineage; keep it the same in every environment."""
    catalog: LakeCatalog = LakeCatalog()
    """The Iceberg catalog."""
    warehouse: str = ".floe/lake"
    """Where table files are stored: a folder, or a URL such as s3://bucket/lake."""


class Storage(SpecModel):
    """Where to find the files of datasets that are not lake tables."""

    root: str = "."
    """Base of relative locations: a folder, or a URL such as s3://bucket."""
    options: dict[str, TextOrSecret] = Field(default_factory=dict)
    """File system settings, such as fs.s3a.access.key."""


class CatalogRetention(SpecModel):
    """How long the catalog keeps its records."""

    events: Duration = parse_duration("90d")
    """Raw events. Events that arrive older than this fill history and trigger nothing."""
    runs: Duration = parse_duration("400d")
    """Runs and their steps."""


class CatalogDatabase(SpecModel):
    """The database of floe's catalog."""

    url: str = "sqlite:///.floe/catalog.db"
    """SQLAlchemy URL, without a password."""
    user: str | None = None
    """User name."""
    password: Secret | None = None
    """Password."""
    retention: CatalogRetention = CatalogRetention()
    """How long it keeps its records."""


class Connection(SpecModel):
    """A database that datasets or processes use."""

    url: str | None = None
    """SQLAlchemy URL for `engine: database`, without a password."""
    jdbc_url: str | None = None
    """JDBC URL for `format: jdbc`."""
    driver: str | None = None
    """Class of the JDBC driver, if it cannot be derived from the URL."""
    user: str | None = None
    """User name."""
    password: Secret | None = None
    """Password."""
    options: dict[str, TextOrSecret] = Field(default_factory=dict)
    """Additional driver settings."""


class Oidc(SpecModel):
    """Login with an OpenID Connect identity provider."""

    issuer: str
    """Issuer URL of the provider."""
    audience: str
    """Audience that its tokens must contain."""
    roles_claim: str = "roles"
    """Claim that contains the roles."""


class Api(SpecModel):
    """The HTTP API and the console."""

    host: str = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, Field(ge=1, le=65535)] = 8765
    """Port to listen on."""
    url: str | None = None
    """Public URL, under which clients reach it."""
    oidc: Oidc | None = None
    """The identity provider."""


def _check_storage_url(url: str) -> str:
    if not url.startswith(("postgresql://", "postgres://")):
        hint = "Write postgresql://host:5432/database; put the password in `password`."
        raise value_error("must be the URL of a PostgreSQL database", hint, "postgresql://host/db")
    return url


class RunRetries(SpecModel):
    """When Dagster retries a run. The tag dagster/max_retries of a job overrides this."""

    attempts: Annotated[int, Field(ge=0, le=100)] = 0
    """Number of retries."""
    failed: bool = False
    """Whether to retry runs with failed steps too, not only runs whose process died."""


class TagLimit(SpecModel):
    """A limit on concurrent runs with a tag."""

    key: str
    """Name of the tag."""
    value: str | None = None
    """Value of the tag; by default runs with any value are counted together."""
    per_value: bool = False
    """Whether the limit applies to each value separately."""
    limit: Annotated[int, Field(ge=1)]
    """Maximum number of concurrent runs."""


class Orchestrator(SpecModel):
    """Dagster: where it stores its state, and its concurrency limits."""

    storage_url: Annotated[str, AfterValidator(_check_storage_url)] | None = None
    """URL of its PostgreSQL database, without a password; by default SQLite in .floe."""
    user: str | None = None
    """User name for the database."""
    password: Secret | None = None
    """Password for the database."""
    executor: Literal["in_process", "multiprocess"] | None = None
    """Executor for jobs that do not declare one."""
    launcher: Literal["warm", "default"] = "warm"
    """Start runs in a process with the project already loaded (warm), or each in a new one."""
    max_concurrent_runs: Annotated[int, Field(ge=1)] = 10
    """Maximum number of concurrent runs."""
    tag_limits: tuple[TagLimit, ...] = ()
    """Limits on concurrent runs with certain tags."""
    pools: dict[ProfileName, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    """Concurrency pools, with the maximum number of concurrent steps in each."""
    retries: RunRetries = RunRetries()
    """When to retry runs."""
    start_timeout: Duration = parse_duration("3m")
    """Maximum time for a run to start before it is marked as failed."""
    port: Annotated[int, Field(ge=1, le=65535)] = 3000
    """Port of Dagster's web interface."""
    url: str | None = None
    """Public URL of Dagster's web interface, for links in notifications."""


def _check_endpoint_url(url: str) -> str:
    address = urlsplit(url)
    if address.scheme not in ("http", "https") or not address.hostname:
        hint = "Write http://HOST:PORT or https://HOST."
        raise value_error("must be an http or https URL", hint, "https://collector.example.com")
    if address.username is not None:
        hint = "Put credentials into `headers`, as references to secrets."
        raise value_error("must not contain credentials", hint, "https://collector.example.com")
    return url


class Endpoint(SpecModel):
    """An endpoint that receives telemetry."""

    url: Annotated[str, AfterValidator(_check_endpoint_url)]
    """URL of the endpoint."""
    headers: dict[str, TextOrSecret] = Field(default_factory=dict)
    """HTTP headers, such as an API key."""


def _check_servers(servers: tuple[Endpoint, ...]) -> tuple[Endpoint, ...]:
    urls = [server.url for server in servers]
    repeated = next((url for url in urls if urls.count(url) > 1), None)
    if repeated is not None:
        raise value_error(f"'{repeated}' is listed twice", "Remove one of the two.", repeated)
    return servers


class PlatformObservability(SpecModel):
    """Where to send traces and lineage in addition to the catalog."""

    otlp: Endpoint | None = None
    """An OpenTelemetry collector."""
    openlineage: Annotated[tuple[Endpoint, ...], AfterValidator(_check_servers)] = ()
    """OpenLineage servers to which `floe api` forwards every event, by base URL."""


class LogChannel(SpecModel):
    """Writes notifications to the log."""

    type: Literal["log"]
    """`log`"""
    level: Literal["info", "warning", "error"] = "warning"
    """Log level."""


class WebhookChannel(SpecModel):
    """Posts notifications as JSON."""

    type: Literal["webhook"]
    """`webhook`"""
    url: TextOrSecret
    """URL to post to."""
    headers: dict[str, TextOrSecret] = Field(default_factory=dict)
    """HTTP headers, such as an API key."""
    timeout: Duration = parse_duration("10s")
    """Timeout of a request."""


class EmailChannel(SpecModel):
    """Sends notifications by e-mail."""

    type: Literal["email"]
    """`email`"""
    to: Annotated[tuple[Email, ...], Field(min_length=1)]
    """Recipients."""
    sender: Email
    """Sender address."""
    host: str
    """Host of the mail server."""
    port: Annotated[int, Field(ge=1, le=65535)] = 587
    """Port of the mail server."""
    user: str | None = None
    """User name."""
    password: Secret | None = None
    """Password."""
    tls: bool = True
    """Whether to encrypt the connection."""


class AppriseChannel(SpecModel):
    """Sends notifications with apprise: to Slack, Teams, PagerDuty and others."""

    type: Literal["apprise"]
    """`apprise`"""
    url: TextOrSecret
    """Apprise URL."""


Channel = Annotated[
    LogChannel | WebhookChannel | EmailChannel | AppriseChannel, Field(discriminator="type")
]


class SecretStore(SpecModel):
    """Where to look up secrets."""

    folder: str = "/run/secrets"
    """Folder with the files of `secret://file/NAME`."""


def _check_date_pattern(pattern: str) -> str:
    missing = GROUPS - set(re.compile(check_regex(pattern)).groupindex)
    if missing:
        hint = r"Name all three, such as (?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})."
        raise value_error(f"'{pattern}' has no group named {sorted(missing)[0]}", hint, BUILT_IN[1])
    return pattern


class Events(SpecModel):
    """How to read events from other systems."""

    date_patterns: tuple[Annotated[str, AfterValidator(_check_date_pattern)], ...] | None = None
    """Regular expressions that find business dates in names and paths; [] disables this."""

    def date_rules(self) -> DateRules:
        """Return the rules that find dates in names; by default the built-in ones."""
        return DEFAULT_RULES if self.date_patterns is None else DateRules(self.date_patterns)


def _embedded_catalog() -> dict[str, CatalogDatabase]:
    return {"default": CatalogDatabase()}


def _log_only() -> dict[str, Channel]:
    return {"log": LogChannel(type="log")}


class PlatformSpec(SpecModel):
    """An environment: compute, lake, databases, endpoints and notification channels."""

    environment: Literal["development", "production"] = "development"
    """In production, a stale compiled file is an error; in development, it is recompiled."""
    compute: dict[ProfileName, Compute] = Field(default_factory=lambda: {"default": Compute()})
    """Compute profiles, by name."""
    lake: Lake = Lake()
    """The lake."""
    storage: dict[ProfileName, Storage] = Field(default_factory=lambda: {"default": Storage()})
    """Storage profiles, by name."""
    catalog: dict[ProfileName, CatalogDatabase] = Field(default_factory=_embedded_catalog)
    """Catalog databases, by profile name."""
    connections: dict[ProfileName, Connection] = Field(default_factory=dict)
    """Databases that the project reads or writes, by name."""
    events: Events = Events()
    """How to read events from other systems."""
    api: Api = Api()
    """The HTTP API and the console."""
    orchestrator: Orchestrator = Orchestrator()
    """Dagster."""
    observability: PlatformObservability = PlatformObservability()
    """Where to send traces and lineage."""
    notifications: dict[ProfileName, Channel] = Field(default_factory=_log_only)
    """Notification channels, by name."""
    secrets: SecretStore = SecretStore()
    """Where to look up secrets."""
