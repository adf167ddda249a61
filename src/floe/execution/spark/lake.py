"""The lake as Spark knows it: an Iceberg catalog and its properties. Pure; secrets stay hidden."""

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
# Without the first, sessions see old data of each other. Without the second, a write that was
# meant for a branch goes to main, and nobody says so.
NEEDED = {"cache-enabled": "false", "table-override.write.wap.enabled": "true"}
# What Iceberg calls the user and the password.
LOGIN = {
    "jdbc": ("jdbc.user", "jdbc.password"),
    "rest": ("rest.auth.basic.username", "rest.auth.basic.password"),
}
# A commit waits for its turn instead of failing, and what was committed survives a power cut.
SQLITE_OPTIONS = {
    "jdbc.busy_timeout": "30000",
    "jdbc.journal_mode": "WAL",
    "jdbc.synchronous": "FULL",
}


def lake_settings(site: Site) -> Settings:
    """Return all that a server has to know of the lake."""
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
    """Return what a session on a server of somebody else needs: the lake itself is theirs."""
    name = site.platform.lake.name
    return {
        "spark.sql.defaultCatalog": name,
        **{f"spark.sql.catalog.{name}.{key}": value for key, value in NEEDED.items()},
    }


def warehouse(site: Site) -> str:
    """Return where the tables' files are: an absolute path, or a URL."""
    written = site.platform.lake.warehouse
    return written if "://" in written else str((site.root / written).resolve())


def lake_file(site: Site) -> Path | None:
    """Return the file of the catalog, if it is one and the server that uses it is floe's own."""
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
    """Return the address, a SQLite file's path made absolute: the JVM runs elsewhere."""
    if written is None:
        return f"{SQLITE}{(root / '.floe' / 'lake.db').resolve()}"
    file = written.removeprefix(SQLITE)
    if file == written or file.startswith((":", "file:")):
        return written
    return f"{SQLITE}{(root / file).resolve()}"
