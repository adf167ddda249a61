"""Create a week of demo data: three delivered feeds and a risk database.

Every run creates the same bytes. Files that are already correct are not written, so that nothing
looks like a new delivery. `--corrupt fx:2026-09-01` corrupts one file; the next run restores it.
"""

import argparse
import hashlib
import json
import sqlite3
import sys
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from random import Random

DAYS = [date(2026, 8, 26) + timedelta(days=n) for n in (0, 1, 2, 5, 6, 7)]
BAD_LINES_DAY = date(2026, 9, 1)
RATES = {"EUR": 1.0, "USD": 1.17, "GBP": 0.86, "CHF": 0.94}
RATES |= {"JPY": 172.4, "SEK": 11.05, "NOK": 11.7, "PLN": 4.26}
LIMITS = {"AAA": 110, "AA": 95, "A": 80, "BBB": 65, "BB": 50, "B": 35, "CCC": 20}
"""Limit of a counterparty by rating, in millions of euro."""
NOTIONALS = {"loan": (1, 9), "bond": (1, 6), "swap": (10, 60), "forward": (5, 30)}
"""Smallest and largest notional of a position by product, in millions of euro."""
RIVERS = "Alster/DE Aare/CH Brenta/IT Clyde/GB Ebro/ES Glomma/NO Meuse/BE Odra/PL Po/IT Lot/FR"
NAMES = [
    (*river.split("/"), sector)
    for sector in ("Bank", "Energy", "Foods", "Ships")
    for river in RIVERS.split()
]
WITHOUT_LIMIT, INACTIVE = (7, 23), 40
TRADING = range(1, INACTIVE)
TABLES = """
create table counterparty (counterparty_id bigint primary key, name varchar(80) not null,
    country char(2), sector varchar(20), rating varchar(3) not null, active integer not null);
create table credit_limit (counterparty_id bigint primary key, limit_eur decimal(18,2));
"""


def random_for(*seed: object) -> Random:
    """Return a generator that depends only on the seed, not on earlier draws."""
    return Random(":".join(map(str, seed)))  # noqa: S311, not used for security


def fx_line(day: date, currency: str) -> str:
    drift = 0 if currency == "EUR" else random_for(currency, day).uniform(-0.01, 0.01)
    return f"{day},{currency},{RATES[currency] * (1 + drift):.8f}"


def fx(day: date) -> list[str]:
    return ["as_of,currency,rate", *(fx_line(day, currency) for currency in RATES)]


def position_line(day: date, position_id: int) -> str:
    deal, today = random_for("position", position_id), random_for("position", position_id, day)
    party, currency = deal.choice(TRADING), deal.choice(list(RATES))
    product = deal.choice(list(NOTIONALS))
    notional = deal.uniform(*NOTIONALS[product]) * 1_000_000 * RATES[currency]
    share = 1.0 if product in ("loan", "bond") else deal.uniform(-0.04, 0.06)
    value = notional * (share + today.uniform(-0.01, 0.01))
    maturity = DAYS[-1] + timedelta(days=deal.randint(30, 3650))
    deal_of = f"{position_id},{party},{product.upper()}-{deal.randint(1, 3)},{product},{currency}"
    return f"{day},{deal_of},{notional:.2f},{value:.2f},{maturity}"


def positions(day: date) -> list[str]:
    """The positions of a day: each day five end and seven begin."""
    first, count = 10_001 + 5 * DAYS.index(day), 495 + 2 * DAYS.index(day)
    header = (
        "as_of,position_id,counterparty_id,book,product,currency,notional,market_value,maturity"
    )
    return [header, *(position_line(day, first + index) for index in range(count))]


def collateral_line(as_of: str, party: int) -> str:
    random = random_for("collateral", party)
    currency = random.choice(list(RATES))
    amount = random.uniform(1e6, 1.5e7) * RATES[currency]
    return f"{as_of};{party};{currency};{amount:.2f};{random.choice((0, 0.05, 0.15)):.4f}"


def collateral(day: date) -> list[str]:
    """Two counterparties in three post some. The trailer counts every line, also invalid ones."""
    as_of = f"{day:%d.%m.%Y}"
    lines = [collateral_line(as_of, party) for party in TRADING if party % 3]
    if day == BAD_LINES_DAY:
        lines[4:4] = [f"{as_of};5;USD;n/a;0.0500", f"{day};8;EUR;250000.00;0.0000", f"{as_of};9"]
    return ["as_of;counterparty_id;currency;amount;haircut", *lines, f"TRL;{len(lines)}"]


FEEDS = {"fx": fx, "positions": positions, "collateral": collateral}


def risk_database() -> bytes:
    """The counterparties and their limits, as the bytes of a SQLite file."""
    database = sqlite3.connect(":memory:")
    database.executescript(TABLES)
    for party, (river, country, sector) in enumerate(NAMES, start=1):
        rating = list(LIMITS)[party % len(LIMITS)]
        row = (party, f"{river} {sector}", country, sector, rating, party != INACTIVE)
        database.execute("insert into counterparty values (?, ?, ?, ?, ?, ?)", row)
        if party not in WITHOUT_LIMIT:
            limit = (party, LIMITS[rating] * 1_000_000)
            database.execute("insert into credit_limit values (?, ?)", limit)
    database.commit()
    content = database.serialize()
    database.close()
    return content


def manifest(name: str, content: bytes, rows: int) -> bytes:
    file = {"name": name, "rows": rows, "sha256": hashlib.sha256(content).hexdigest()}
    return json.dumps({"files": [file], "rows": rows}, indent=2).encode()


def corrupt_content(content: bytes) -> bytes:
    """Change the last digit: of a value covered by a checksum, or of the trailer's count."""
    return content[:-2] + (b"1" if content[-2:-1] == b"0" else b"0") + content[-1:]


def all_files(corrupt: str | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield every file with its content; a manifest comes after its file."""
    yield "risk.db", risk_database()
    for feed, day in ((feed, day) for feed in FEEDS for day in DAYS):
        lines, folder = FEEDS[feed](day), f"landing/{feed}/{day}"
        content = "".join(f"{line}\n" for line in lines).encode()
        is_corrupt = corrupt == f"{feed}:{day}"
        yield f"{folder}/{feed}.csv", corrupt_content(content) if is_corrupt else content
        if feed != "collateral":
            yield f"{folder}/manifest.json", manifest(f"{feed}.csv", content, len(lines) - 1)


def write(path: Path, content: bytes) -> bool:
    """Write a file atomically; return whether it had to be written."""
    if path.exists() and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    draft.write_bytes(content)
    draft.replace(path)
    return True


def main(words: list[str] | None = None) -> None:
    deliveries = [f"{feed}:{day}" for feed in FEEDS for day in DAYS]
    parser = argparse.ArgumentParser(description="Create a week of demo data.")
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent / "data")
    parser.add_argument("--corrupt", choices=deliveries, metavar="FEED:DATE")
    chosen = parser.parse_args(words)
    written = [write(chosen.folder / name, data) for name, data in all_files(chosen.corrupt)]
    sys.stdout.write(f"{len(written)} files, {sum(written)} of them written.\n")


if __name__ == "__main__":
    main()
