"""platform.yaml: where a project runs. Each environment has its own; floe.yaml stays the same."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from floe.spec.base import SpecModel
from floe.spec.dates import BUILT_IN, DEFAULT_RULES, GROUPS, DateRules
from floe.spec.names import Email, Memory, ProfileName, SqlName
from floe.spec.patterns import check_regex
from floe.spec.secrets import Secret, TextOrSecret
from floe.spec.values import Duration, parse_duration
from floe.spec.wrong import wrong

_CLUSTERS = ("sc://", "spark://", "k8s://", "yarn", "local")


def _check_spark_url(url: str) -> str:
    if not url.startswith(_CLUSTERS):
        hint = "Write sc://host:15002, spark://host:7077, k8s://host:443, yarn or local[4]."
        raise wrong(f"'{url}' is not an address of Spark", hint, "sc://host:15002")
    return url


class Compute(SpecModel):
    """A Spark to compute on."""

    url: Annotated[str, AfterValidator(_check_spark_url)] | None = None
    """A Spark Connect server (sc://) or a cluster's master; without one floe starts its own."""
    token: Secret | None = None
    """The token of the Spark Connect server."""
    cores: Annotated[int, Field(ge=1)] | None = None
    """Cores of the embedded server; by default those of the machine."""
    memory: Memory | None = None
    """Memory of the embedded server, such as 4g; by default a part of the machine's."""
    packages: tuple[str, ...] = ()
    """Further Maven packages, as group:artifact:version."""
    conf: dict[str, TextOrSecret] = Field(default_factory=dict)
    """Spark settings."""


class LakeCatalog(SpecModel):
    """The Iceberg catalog of the lake."""

    type: Literal["jdbc", "rest", "hive", "glue", "nessie", "hadoop"] = "jdbc"
    """What kind of catalog it is."""
    uri: str | None = None
    """Its address; the embedded one is a SQLite file in .floe."""
    user: str | None = None
    """Who logs in."""
    password: Secret | None = None
    """The password."""
    token: Secret | None = None
    """The token, of a REST catalog."""
    options: dict[str, TextOrSecret] = Field(default_factory=dict)
    """Further properties, passed on to Iceberg."""


class Lake(SpecModel):
    """The lake: where tables live, and the namespace of every dataset."""

    name: SqlName = "lake"
    """The name of the lake in Spark and in lineage; the same in every environment."""
    catalog: LakeCatalog = LakeCatalog()
    """The Iceberg catalog."""
    warehouse: str = ".floe/lake"
    """Where the tables' files are: a folder, or a URL such as s3://bucket/lake."""


class Storage(SpecModel):
    """Where files of datasets live that are not lake tables."""

    root: str = "."
    """What relative locations start from: a folder, or a URL such as s3://bucket."""
    options: dict[str, TextOrSecret] = Field(default_factory=dict)
    """Settings of the file system, such as fs.s3a.access.key."""


class CatalogRetention(SpecModel):
    """How long the catalog keeps what happened."""

    events: Duration = parse_duration("90d")
    """Raw events. One that arrives when it is older fills history and triggers nothing."""
    runs: Duration = parse_duration("400d")
    """Runs and their steps."""


class CatalogDatabase(SpecModel):
    """The database of floe's own catalog."""

    url: str = "sqlite:///.floe/catalog.db"
    """Its SQLAlchemy address, without a password."""
    user: str | None = None
    """Who logs in."""
    password: Secret | None = None
    """The password."""
    retention: CatalogRetention = CatalogRetention()
    """How long it keeps what happened."""


class Connection(SpecModel):
    """A database that datasets or processes of the project use."""

    url: str | None = None
    """Its SQLAlchemy address, for `engine: database`; without a password."""
    jdbc_url: str | None = None
    """Its JDBC address, for `format: jdbc`."""
    driver: str | None = None
    """The class of the JDBC driver, when it does not follow from the address."""
    user: str | None = None
    """Who logs in."""
    password: Secret | None = None
    """The password."""
    options: dict[str, TextOrSecret] = Field(default_factory=dict)
    """Further settings of the driver."""


class Oidc(SpecModel):
    """Logging in with the company's identity provider."""

    issuer: str
    """The address of the provider."""
    audience: str
    """Whom its tokens must be made for."""
    roles_claim: str = "roles"
    """The claim that holds the roles."""


class Api(SpecModel):
    """The HTTP API and the console."""

    host: str = "127.0.0.1"
    """The address it listens on."""
    port: Annotated[int, Field(ge=1, le=65535)] = 8765
    """The port it listens on."""
    url: str | None = None
    """The address under which others reach it."""
    oidc: Oidc | None = None
    """The identity provider."""


def _check_storage_url(url: str) -> str:
    if not url.startswith(("postgresql://", "postgres://")):
        hint = "Write postgresql://host:5432/database; the password goes to `password`."
        raise wrong("is not the address of a PostgreSQL database", hint, "postgresql://host/db")
    return url


class RunRetries(SpecModel):
    """When Dagster starts a run again. Jobs may say otherwise by the tag dagster/max_retries."""

    attempts: Annotated[int, Field(ge=0, le=100)] = 0
    """How often a run is started again."""
    failed: bool = False
    """Whether also one whose steps failed; by default only one whose process died."""


class TagLimit(SpecModel):
    """A limit for runs that carry a tag."""

    key: str
    """The name of the tag."""
    value: str | None = None
    """Its value; without one, all values count together."""
    per_value: bool = False
    """Whether each value has a limit of its own."""
    limit: Annotated[int, Field(ge=1)]
    """How many such runs at once."""


class Orchestrator(SpecModel):
    """Dagster: where it keeps its state, and how much runs at once."""

    storage_url: Annotated[str, AfterValidator(_check_storage_url)] | None = None
    """Its PostgreSQL database, without a password; by default SQLite in .floe."""
    user: str | None = None
    """Who logs in there."""
    password: Secret | None = None
    """The password there."""
    executor: Literal["in_process", "multiprocess"] | None = None
    """What runs steps, when the job does not say."""
    launcher: Literal["warm", "default"] = "warm"
    """Runs begin in a process that has the project loaded already, or each in a new one."""
    max_concurrent_runs: Annotated[int, Field(ge=1)] = 10
    """How many runs at once."""
    tag_limits: tuple[TagLimit, ...] = ()
    """How many runs with certain tags at once."""
    pools: dict[ProfileName, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    """Concurrency pools: how many steps of each at once."""
    retries: RunRetries = RunRetries()
    """When runs are started again."""
    start_timeout: Duration = parse_duration("3m")
    """How long a run may take to start before it counts as failed."""
    port: Annotated[int, Field(ge=1, le=65535)] = 3000
    """The port of Dagster's web interface."""
    url: str | None = None
    """The address under which others reach that, for the links in messages."""


class Endpoint(SpecModel):
    """Where telemetry is sent."""

    url: str
    """The address."""
    headers: dict[str, TextOrSecret] = Field(default_factory=dict)
    """Headers, such as an API key."""


class PlatformObservability(SpecModel):
    """Where traces and lineage go besides the catalog."""

    otlp: Endpoint | None = None
    """An OpenTelemetry collector."""
    openlineage: tuple[Endpoint, ...] = ()
    """OpenLineage servers to forward every event to."""


class LogChannel(SpecModel):
    """Notifications go to the log."""

    type: Literal["log"]
    """`log`"""
    level: Literal["info", "warning", "error"] = "warning"
    """How loud."""


class WebhookChannel(SpecModel):
    """Notifications are posted as JSON."""

    type: Literal["webhook"]
    """`webhook`"""
    url: TextOrSecret
    """Where to."""
    headers: dict[str, TextOrSecret] = Field(default_factory=dict)
    """Headers, such as an API key."""
    timeout: Duration = parse_duration("10s")
    """When to give up."""


class EmailChannel(SpecModel):
    """Notifications are sent by e-mail."""

    type: Literal["email"]
    """`email`"""
    to: Annotated[tuple[Email, ...], Field(min_length=1)]
    """Who gets them."""
    sender: Email
    """Who they come from."""
    host: str
    """The mail server."""
    port: Annotated[int, Field(ge=1, le=65535)] = 587
    """Its port."""
    user: str | None = None
    """Who logs in."""
    password: Secret | None = None
    """The password."""
    tls: bool = True
    """Whether the connection is encrypted."""


class AppriseChannel(SpecModel):
    """Notifications go wherever apprise can send them: Slack, Teams, PagerDuty and so on."""

    type: Literal["apprise"]
    """`apprise`"""
    url: TextOrSecret
    """The apprise address."""


Channel = Annotated[
    LogChannel | WebhookChannel | EmailChannel | AppriseChannel, Field(discriminator="type")
]


class SecretStore(SpecModel):
    """Where secrets are looked up."""

    folder: str = "/run/secrets"
    """The folder of `secret://file/NAME`."""


def _check_date_pattern(pattern: str) -> str:
    missing = GROUPS - set(re.compile(check_regex(pattern)).groupindex)
    if missing:
        hint = r"Name all three, such as (?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})."
        raise wrong(f"'{pattern}' has no group named {sorted(missing)[0]}", hint, BUILT_IN[1])
    return pattern


class Events(SpecModel):
    """How events of other systems are read."""

    date_patterns: tuple[Annotated[str, AfterValidator(_check_date_pattern)], ...] | None = None
    """Regular expressions that find the business date in names and paths; [] switches it off."""

    def date_rules(self) -> DateRules:
        """Return the rules for dates in names; by default the built-in ones."""
        return DEFAULT_RULES if self.date_patterns is None else DateRules(self.date_patterns)


def _embedded_catalog() -> dict[str, CatalogDatabase]:
    return {"default": CatalogDatabase()}


def _log_only() -> dict[str, Channel]:
    return {"log": LogChannel(type="log")}


class PlatformSpec(SpecModel):
    """An environment: compute, lake, databases, endpoints and channels."""

    environment: Literal["development", "production"] = "development"
    """In production a stale compiled file is refused; in development it is compiled again."""
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
    """How events of other systems are read."""
    api: Api = Api()
    """The HTTP API and the console."""
    orchestrator: Orchestrator = Orchestrator()
    """Dagster."""
    observability: PlatformObservability = PlatformObservability()
    """Where telemetry goes."""
    notifications: dict[ProfileName, Channel] = Field(default_factory=_log_only)
    """Notification channels, by name."""
    secrets: SecretStore = SecretStore()
    """Where secrets are looked up."""
