"""Spark settings of the lake's Iceberg catalog. Pure; secrets stay references."""

from collections.abc import Mapping
from pathlib import Path

from floe.execution.site import Site
from floe.spec.platform import LakeCatalog
from floe.spec.secrets import SecretRef

Settings = dict[str, str | SecretRef]

EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
SPARK_CATALOG = "org.apache.iceberg.spark.SparkCatalog"
NESSIE_CATALOG = "org.apache.iceberg.nessie.NessieCatalog"
GLUE_CATALOG = "org.apache.iceberg.aws.glue.GlueCatalog"
SQLITE = "jdbc:sqlite:"
# Without the first, sessions see outdated data of each other. Without the second, a write to a
# branch silently goes to main.
NEEDED = {"cache-enabled": "false", "table-override.write.wap.enabled": "true"}
# Iceberg's property names of user and password.
LOGIN = {
    "jdbc": ("jdbc.user", "jdbc.password"),
    "rest": ("rest.auth.basic.username", "rest.auth.basic.password"),
}
# Commits wait for a lock instead of failing, and survive a power failure.
SQLITE_OPTIONS = {
    "jdbc.busy_timeout": "30000",
    "jdbc.journal_mode": "WAL",
    "jdbc.synchronous": "FULL",
}


def lake_settings(site: Site) -> Settings:
    """Return all settings of the lake that a server needs."""
    name, catalog = site.platform.lake.name, site.platform.lake.catalog
    properties: Settings = {
        **_catalog_properties(site.root, catalog),
        "warehouse": warehouse(site),
        **NEEDED,
        **catalog.options,
    }
    return {
        "spark.sql.extensions": EXTENSIONS,
        "spark.sql.defaultCatalog": name,
        f"spark.sql.catalog.{name}": SPARK_CATALOG,
        **_prefixed(name, properties),
    }


def session_lake_settings(site: Site) -> dict[str, str]:
    """Return the lake settings of a session on a server that floe does not manage."""
    name = site.platform.lake.name
    return {
        "spark.sql.defaultCatalog": name,
        **{f"spark.sql.catalog.{name}.{key}": value for key, value in NEEDED.items()},
    }


def warehouse(site: Site) -> str:
    """Return the location of the tables' files: an absolute path or a URL."""
    written = site.platform.lake.warehouse
    return written if "://" in written else str((site.root / written).resolve())


def lake_file(site: Site) -> Path | None:
    """Return the catalog's SQLite file, if it has one and floe manages the server."""
    catalog, url = site.platform.lake.catalog, site.compute().url or ""
    address = _jdbc_uri(site.root, catalog.uri) if catalog.type == "jdbc" else ""
    path = address.removeprefix(SQLITE)
    return Path(path) if path.startswith("/") and not url.startswith("sc://") else None


def _prefixed(name: str, properties: Mapping[str, str | SecretRef]) -> Settings:
    return {f"spark.sql.catalog.{name}.{key}": value for key, value in properties.items()}


def _catalog_properties(root: Path, catalog: LakeCatalog) -> Settings:
    properties: Settings = dict(_kind(catalog.type))
    if catalog.type == "jdbc":
        properties |= _jdbc(root, catalog)
    elif catalog.uri is not None:
        properties["uri"] = catalog.uri
    if catalog.type == "rest" and catalog.user is not None:
        properties["rest.auth.type"] = "basic"
    if catalog.token is not None:
        properties["token"] = catalog.token
    return properties | _login(catalog)


def _login(catalog: LakeCatalog) -> Settings:
    user, password = LOGIN.get(catalog.type, ("user", "password"))
    login = {user: catalog.user, password: catalog.password}
    return {key: value for key, value in login.items() if value is not None}


def _kind(kind: str) -> dict[str, str]:
    named = {"nessie": NESSIE_CATALOG, "glue": GLUE_CATALOG}
    return {"catalog-impl": named[kind]} if kind in named else {"type": kind}


def _jdbc(root: Path, catalog: LakeCatalog) -> Settings:
    uri = _jdbc_uri(root, catalog.uri)
    properties: Settings = {"uri": uri, "jdbc.schema-version": "V1"}
    if uri.startswith(SQLITE):
        properties |= SQLITE_OPTIONS
    return properties


def _jdbc_uri(root: Path, written: str | None) -> str:
    """Return the address; a SQLite path becomes absolute, as the JVM's folder differs."""
    if written is None:
        return f"{SQLITE}{(root / '.floe' / 'lake.db').resolve()}"
    file = written.removeprefix(SQLITE)
    if file == written or file.startswith((":", "file:")):
        return written
    return f"{SQLITE}{(root / file).resolve()}"
