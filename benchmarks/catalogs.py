"""Big catalogs for the benchmarks: many business domains, each with its own layered graph.

The first domains of a big catalog are exactly those of a small one, so that the same query
has the same result in both.
"""

import hashlib
import random
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import select

from floe.catalog import search_index
from floe.catalog.database import Catalog, open_catalog
from floe.catalog.migrate import SCRIPTS, upgrade_catalog
from floe.catalog.stores import sqlite
from floe.catalog.tables import Dataset

WORK = Path(__file__).parent / ".work"
MOMENT = "2026-09-01 06:00:00.000000"
LAYERS = 10
PROCESSES_PER_LAYER = 150
DATASET_COLUMNS = (
    "dataset_id",
    "namespace",
    "name",
    "full_name",
    "description",
    "category",
    "default_format",
    "owner_team",
    "owner_email",
    "status",
    "schema_hash",
    "needs_validation",
    "created_at",
)
PROCESS_COLUMNS = (
    "process_id",
    "process_key",
    "name",
    "technology",
    "team",
    "owner_email",
    "trigger_mode",
    "status",
    "created_at",
)
EDGE_COLUMNS = (
    "source_type",
    "source_id",
    "target_type",
    "target_id",
    "edge_role",
    "known_by",
    "first_seen",
    "last_seen",
    "created_at",
)
# Some datasets, such as customers or rates, are read by their whole domain.
HUBS = 6
READS_A_HUB = 0.1


@dataclass
class Rows:
    """Rows of one table, in the order of its columns."""

    table: str
    columns: Sequence[str]
    rows: list[tuple[Any, ...]]


@dataclass(frozen=True)
class Domain:
    """One domain: its datasets, its processes with what they read and write, by position."""

    number: int
    datasets: list[str]
    reads: list[list[int]]
    writes: list[list[int]]


def make_domain(number: int) -> Domain:
    """Create a domain: each process reads the preceding layers, near its own position."""
    chance = random.Random(number)
    datasets = [f"dom{number:03d}.raw.t{i:05d}" for i in range(2 * PROCESSES_PER_LAYER)]
    layers = [list(range(len(datasets)))]
    reads: list[list[int]] = []
    writes: list[list[int]] = []
    for depth in range(1, LAYERS + 1):
        new: list[int] = []
        for place in range(PROCESSES_PER_LAYER):
            reads.append(_choose_inputs(chance, layers, place / PROCESSES_PER_LAYER))
            outputs = range(len(datasets), len(datasets) + chance.choice((1, 1, 2)))
            datasets += [f"dom{number:03d}.l{depth:02d}.t{i:05d}" for i in outputs]
            writes.append(list(outputs))
            new += outputs
        layers.append(new)
    return Domain(number, datasets, reads, writes)


def _choose_inputs(chance: random.Random, layers: list[list[int]], place: float) -> list[int]:
    inputs = {_near(chance, layers[-1], place)}
    for _ in range(chance.choice((1, 2, 2, 3))):
        if chance.random() < READS_A_HUB:
            inputs.add(chance.randrange(HUBS))
        else:
            inputs.add(_near(chance, chance.choice(layers[-3:]), place))
    return sorted(inputs)


def _near(chance: random.Random, layer: list[int], place: float) -> int:
    return layer[int(place * len(layer) + chance.randint(-3, 3)) % len(layer)]


def index_catalog(catalog: Catalog) -> None:
    """Index every dataset of a catalog for the search."""
    with catalog.writing() as session:
        search_index.index_datasets(session, session.scalars(select(Dataset.dataset_id)))


def make_domains(edges: int) -> list[Domain]:
    """Create domains until they have this many edges."""
    domains: list[Domain] = []
    while edges > 0:
        domains.append(make_domain(len(domains)))
        edges -= sum(1 for _ in _links(domains[-1]))
    return domains


def _links(domain: Domain) -> Iterator[tuple[str, int, str, int, str, str]]:
    """Return every edge as observed; every second process also declares its edges."""
    for process, (reads, writes) in enumerate(zip(domain.reads, domain.writes, strict=True)):
        for known_by in ("OBSERVED", "DECLARED")[: 1 + process % 2]:
            for dataset in reads:
                yield "DATASET", dataset, "PROCESS", process, "CONSUMES", known_by
            for dataset in writes:
                yield "PROCESS", process, "DATASET", dataset, "PRODUCES", known_by


def graph_rows(edges: int) -> list[Rows]:
    """Return the tables of a catalog with this many edges, in random order as over years."""
    domains, chance = make_domains(edges), random.Random(edges)
    dataset_ids = _numbers(chance, [len(domain.datasets) for domain in domains])
    process_ids = _numbers(chance, [len(domain.reads) for domain in domains])
    ids = {"DATASET": dataset_ids, "PROCESS": process_ids}
    links = [
        (a, ids[a][k][i], b, ids[b][k][j], role, known_by, MOMENT, MOMENT, MOMENT)
        for k, domain in enumerate(domains)
        for a, i, b, j, role, known_by in _links(domain)
    ]
    chance.shuffle(links)
    datasets = [
        _dataset_row(dataset_ids[k][i], name, f"team {k % 40}")
        for k, domain in enumerate(domains)
        for i, name in enumerate(domain.datasets)
    ]
    processes = [
        _process_row(process_ids[k][i], f"AUTOSYS/DOM{k:03d}/job_{i:05d}", f"team {k % 40}")
        for k, domain in enumerate(domains)
        for i in range(len(domain.reads))
    ]
    return [
        Rows("dataset", DATASET_COLUMNS, datasets),
        Rows("process", PROCESS_COLUMNS, processes),
        Rows("lineage_edge", EDGE_COLUMNS, links),
    ]


def _numbers(chance: random.Random, sizes: list[int]) -> list[list[int]]:
    """Assign row ids 1, 2, 3 … at random to parts of these sizes."""
    numbers = list(range(1, sum(sizes) + 1))
    chance.shuffle(numbers)
    return [[numbers.pop() for _ in range(size)] for size in sizes]


def _dataset_row(number: int, name: str, team: str) -> tuple[Any, ...]:
    email = f"{team.replace(' ', '-')}@example.com"
    return (
        number, "lake", name, f"lake/{name}", f"What {name} holds, in a sentence or two.",
        "market", "ICEBERG", team, email, "ACTIVE", None, "N", MOMENT,
    )  # fmt: skip


def _process_row(number: int, key: str, team: str) -> tuple[Any, ...]:
    email = f"{team.replace(' ', '-')}@example.com"
    name = key.rsplit("/", 1)[1]
    return (number, key, name, "AUTOSYS", team, email, "PROCESS", "ACTIVE", MOMENT)


def sqlite_catalog(
    name: str,
    tables: Callable[[], list[Rows]],
    finish: Callable[[Catalog], None] = lambda catalog: None,
) -> Path:
    """Return a SQLite catalog with these rows, cached until this code changes."""
    WORK.mkdir(exist_ok=True)
    path = WORK / f"{name}-{_recipe()}.db"
    if path.exists():
        return path
    for old in WORK.glob(f"{name}-*"):
        old.unlink()
    unfinished = path.with_suffix(".part")
    catalog = open_catalog(f"sqlite:///{unfinished}")
    upgrade_catalog(catalog)
    catalog.close()
    with closing(sqlite3.connect(unfinished)) as connection:
        # An incomplete file is discarded, so it need not be durable.
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA cache_size = -500000")
        for part in tables():
            slots = ", ".join("?" * len(part.columns))
            connection.executemany(
                f"INSERT INTO {part.table} ({', '.join(part.columns)}) VALUES ({slots})", part.rows
            )
        connection.commit()
    catalog = open_catalog(f"sqlite:///{unfinished}")
    finish(catalog)
    catalog.close()
    unfinished.rename(path)
    return path


def _recipe() -> str:
    indexing = (search_index.__file__, sqlite.__file__)
    sources = [Path(__file__), *map(Path, indexing), *sorted(SCRIPTS.rglob("*.py"))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


def fill_postgresql(
    url: str,
    dsn: str,
    tables: list[Rows],
    finish: Callable[[Catalog], None] = lambda catalog: None,
) -> None:
    """Fill an empty PostgreSQL database with a catalog of these rows."""
    catalog = open_catalog(url)
    upgrade_catalog(catalog)
    with psycopg.connect(dsn) as connection:
        for part in tables:
            copy = f"COPY {part.table} ({', '.join(part.columns)}) FROM STDIN"
            with connection.cursor().copy(copy.encode()) as stream:
                for row in part.rows:
                    stream.write_row(row)
    finish(catalog)
    catalog.close()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


# The most frequent words of the search catalog; a long tail of rare ones follows.
COMMON = (
    "customers orders trades positions exposure limits rates prices accounts payments ledger "
    "balances invoices products contracts collateral counterparties deals fees risk credit market "
    "daily monthly history snapshot raw clean summary report events clicks sessions users devices"
)
LAYER_NAMES = ("landing", "bronze", "silver", "gold", "mart", "sandbox")


def make_vocabulary(size: int = 3_000) -> list[str]:
    """Return the words, most frequent first."""
    chance = random.Random(7)
    syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er")]
    rare = {"".join(chance.choices(syllables, k=chance.randint(2, 4))) for _ in range(size)}
    return COMMON.split() + sorted(rare)


def search_rows(datasets: int) -> list[Rows]:
    """Return a catalog for searches: names, descriptions, owners, tags and columns."""
    chance, vocabulary = random.Random(datasets), make_vocabulary()
    # As in any language, the n-th word is about n times rarer than the first (Zipf).
    weights = list(accumulate(1 / (rank + 3) for rank in range(len(vocabulary))))

    def say(count: int) -> list[str]:
        return chance.choices(vocabulary, cum_weights=weights, k=count)

    # A team owns one kind of data, mostly in one format.
    formats = ("ICEBERG", "CSV", "PARQUET")
    teams = [
        (f"{word} team", vocabulary[number % 12], formats[number % 3])
        for number, word in enumerate(vocabulary[10:90])
    ]
    schemas = [(f"{number:064x}", say(12)) for number in range(datasets // 20)]
    rows: list[tuple[Any, ...]] = []
    tags: set[tuple[Any, ...]] = set()
    for number in range(1, datasets + 1):
        name = f"{chance.choice(LAYER_NAMES)}.{'_'.join(say(2))}_{number:06d}"
        team, category, data_format = chance.choice(teams)
        about = " ".join(say(chance.randint(5, 25))).capitalize() + "."
        schema = chance.choice(schemas)[0]
        rows.append(
            (
                number, "lake", name, f"lake/{name}", about, category, data_format, team,
                f"{team.replace(' ', '-')}@example.com",
                chance.choice(("ACTIVE", "ACTIVE", "DRAFT", "DEPRECATED")), schema, "N", MOMENT,
            )
        )  # fmt: skip
        tags |= {(number, tag) for tag in say(2)}
    columns = [
        (schema, order, f"{column}_{order}", "VARCHAR", "Y")
        for schema, names in schemas
        for order, column in enumerate(names)
    ]
    return [
        Rows("dataset", DATASET_COLUMNS, rows),
        Rows("dataset_tag", ("dataset_id", "tag"), sorted(tags)),
        Rows(
            "dataset_schema",
            ("schema_hash", "column_order", "column_name", "column_type", "nullable"),
            columns,
        ),
    ]
