"""Deliveries without Spark: fingerprints, and valid, invalid or missing manifests."""

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

import pytest

from floe.errors import FloeError
from floe.execution.cancellation import CancelledError
from floe.execution.formats.contract import (
    Delivery,
    DeliveryIncompleteError,
    DeliveryRejectedError,
    StoredVersion,
    VersionUnreadableError,
)
from floe.execution.formats.csv import CsvFormat
from floe.execution.formats.deliveries import unchanged_files
from floe.execution.formats.delivery_errors import foreign_read, one_line
from floe.execution.formats.fixed_width import FixedWidthFormat
from floe.execution.site import Site
from floe.execution.spark.errors import SparkUnavailableError
from tests.execution.formats.factory import make_site, make_version, put

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

CSV = CsvFormat()


class SettingMissingError(FloeError):
    def __init__(self) -> None:
        super().__init__("No password is set for the connection 'ref'.")


TEXT = "as_of,rate\n2026-09-01,1.5\n2026-09-01,2.5\n"
JSON = {"kind": "json", "checksum": "sha256"}
NO_SPARK = cast("SparkSession", None)


def feed(**spec: Any) -> StoredVersion:
    return make_version(
        "market.fx", format="csv", location="landing/fx/{business_date}/*.csv*", **spec
    )


def land(site: Site, name: str = "fx.csv", text: str | bytes = TEXT) -> Path:
    return put(site.root / "landing/fx/2026-09-01" / name, text)


def announce(site: Site, content: Any) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    put(site.root / "landing/fx/2026-09-01/manifest.json", text)


def entry(name: str = "fx.csv", text: str = TEXT, **other: Any) -> dict[str, Any]:
    about = {"name": name, "rows": 2, "checksum": hashlib.sha256(text.encode()).hexdigest()}
    return {**about, **other}


def find(site: Site, version: StoredVersion) -> Delivery:
    delivery = CSV.find(site, version)
    assert delivery is not None
    return delivery


def verify(site: Site, version: StoredVersion) -> Delivery:
    delivery = find(site, version)
    version = replace(version, path=delivery.path, details=delivery.details)
    return CSV.verify(site, NO_SPARK, version, delivery)


def test_without_files_there_is_no_delivery(site: Site) -> None:
    assert CSV.find(site, feed()) is None
    put(site.root / "landing/fx/2026-09-01/manifest.json", "{}")
    put(site.root / "landing/fx/2026-09-01/_fx.csv", "")
    assert CSV.find(site, feed(manifest=JSON)) is None


def test_a_delivery_lists_its_files(site: Site) -> None:
    land(site)
    land(site, "late.csv", "as_of,rate\n")
    delivery = find(site, feed())
    assert delivery.path == str(site.root / "landing/fx/2026-09-01/*.csv*")
    assert delivery.size == len(TEXT) + 11
    assert [file["name"] for file in delivery.details["files"]] == ["fx.csv", "late.csv"]
    assert delivery.details["files"][0]["sha256"] == hashlib.sha256(TEXT.encode()).hexdigest()


def test_changing_a_file_changes_the_fingerprint_but_touching_it_does_not(site: Site) -> None:
    path = land(site)
    first = find(site, feed()).fingerprint
    os.utime(path, ns=(1, 1))
    assert find(site, feed()).fingerprint == first
    land(site, text=TEXT.replace("1.5", "1.6"))
    assert find(site, feed()).fingerprint != first
    land(site)
    land(site, "more.csv")
    assert find(site, feed()).fingerprint != first


def test_a_file_with_the_same_size_and_times_is_not_read_again(site: Site) -> None:
    path = land(site)
    version = replace(feed(), details=find(site, feed()).details)
    version.details["files"][0]["sha256"] = "remembered"
    assert find(site, version).details["files"][0]["sha256"] == "remembered"
    os.utime(path, ns=(1, 1))
    assert find(site, version).details["files"][0]["sha256"] != "remembered"


def test_a_corrected_manifest_makes_a_new_delivery(site: Site) -> None:
    land(site)
    announce(site, {"files": [entry(rows=3)], "made_at": "07:00"})
    version = feed(manifest=JSON)
    wrong = find(site, version).fingerprint
    announce(site, {"files": [entry(rows=2)], "made_at": "07:00"})
    right = find(site, version).fingerprint
    assert wrong != right
    announce(site, {"files": [entry(rows=2)], "made_at": "08:00"})
    assert find(site, version).fingerprint == right


def test_a_location_may_be_a_directory(site: Site) -> None:
    land(site)
    land(site, "sub/more.csv")
    version = make_version("market.fx", format="csv", location="landing/fx/{business_date}")
    assert [file["name"] for file in find(site, version).details["files"]] == [
        "fx.csv",
        "sub/more.csv",
    ]


def test_a_delivered_file_that_changes_makes_the_version_unreadable(site: Site) -> None:
    path = land(site)
    version = replace(feed(), details=find(site, feed()).details)
    os.utime(path, ns=(1, 1))
    assert unchanged_files(version) == [path]
    land(site, text=TEXT.replace("1.5", "1.6"))
    with pytest.raises(VersionUnreadableError, match=r"fx\.csv was changed after"):
        unchanged_files(version)
    path.unlink()
    with pytest.raises(VersionUnreadableError, match=r"fx\.csv was removed after"):
        unchanged_files(version)


def test_a_delivery_that_matches_its_manifest_is_accepted(site: Site) -> None:
    land(site)
    announce(site, {"files": [entry()]})
    assert verify(site, feed(manifest=JSON)).rows == 2


@pytest.mark.parametrize(
    "content",
    [
        [entry()],
        {"files": {"fx.csv": {"row_count": "2", "sha256": entry()["checksum"].upper()}}},
        {"files": [{"file": "fx.csv", "records": 2, "digest": f"sha256:{entry()['checksum']}"}]},
        {"files": [entry(algorithm="MD5", checksum=hashlib.md5(TEXT.encode()).hexdigest())]},
        {"rows": 2, "files": [{"path": "fx.csv", "sha256": entry()["checksum"], "bytes": 41}]},
        {"files": [{"filename": "fx.csv", "rows": 2, "crc32": f"{zlib.crc32(TEXT.encode()):x}"}]},
    ],
)
def test_manifests_may_use_other_common_key_names(site: Site, content: Any) -> None:
    land(site)
    announce(site, content)
    assert verify(site, feed(manifest=JSON)).rows == 2


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"files": [entry(rows=3)]}, "fx.csv: the manifest says rows 3, found 2"),
        ({"files": [entry(size=5)]}, "fx.csv: the manifest says bytes 5, found 41"),
        ({"files": [entry(checksum="ab")]}, "fx.csv: the manifest says sha256 ab, found "),
        ({"files": [entry(), entry("other.csv")]}, "other.csv is in the manifest but was not"),
        ({"files": []}, "fx.csv was delivered but is not in the manifest"),
        ({"files": [{"name": "fx.csv", "rows": 2}]}, "the manifest gives no sha256 for fx.csv"),
        ({"files": [entry(rows=None)]}, "the manifest gives no row counts"),
        ({"rows": 2, "checksum": "ab"}, "the manifest lists no files"),
        ({"files": [entry(), entry()]}, "it lists fx.csv twice"),
        (
            {"files": [entry(), entry("../fx.csv")]},
            "../fx.csv, which is outside the delivery folder",
        ),
        ({"files": [entry("/etc/passwd")]}, "/etc/passwd, which is outside the delivery folder"),
        ('{"files": {"fx.csv": 2, "fx.csv": 3}}', "it has 'fx.csv' more than once"),
        ({"files": [entry(rows=-2)]}, "invalid number of rows: '-2'"),
        ({"files": [entry(rows=2.0)]}, "invalid number of rows: '2.0'"),
        ({"files": [entry(rows=True)]}, "invalid number of rows: 'True'"),
        ({"files": [entry(rows="1_000")]}, "invalid number of rows: '1_000'"),
        ({"files": [entry()], "rows": 9}, "all files together: the manifest says rows 9, found 2"),
        (
            {"files": [entry(rows="many")]},
            "manifest.json cannot be read: invalid number of rows: 'many'",
        ),
        ({"files": [{"rows": 2}]}, "has no file name"),
        ("{", "manifest.json cannot be read: it is not JSON"),
        ("7", "it is neither an object nor a list"),
    ],
)
def test_a_delivery_that_its_manifest_contradicts_is_rejected(
    site: Site, content: Any, reason: str
) -> None:
    land(site)
    announce(site, content)
    with pytest.raises(DeliveryRejectedError) as caught:
        verify(site, feed(manifest=JSON))
    assert reason in str(caught.value)


def test_a_delivery_without_its_manifest_is_incomplete(site: Site) -> None:
    land(site)
    with pytest.raises(DeliveryIncompleteError, match=r"manifest\.json is missing"):
        verify(site, feed(manifest=JSON))


def test_a_manifest_may_be_in_another_folder(site: Site) -> None:
    land(site)
    put(site.root / "done/2026-09-01.json", json.dumps([entry()]))
    assert verify(site, feed(manifest={**JSON, "path": "done/{business_date}.json"})).rows == 2


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("fx.csv", TEXT.replace("\n", "\r\n") + "\r\n", {}),
        ("fx.csv", "made by hand\n\n" + TEXT, {"skip_lines": 1}),
        ("fx.csv", "# note\n" + TEXT + "# end", {"comment": "#"}),
        ("fx.csv", "2026-09-01,1\n2026-09-01,2", {"header": False}),
        ("fx.csv", 'a,b\n1,"two\nlines"\n2,"""\n"', {"multiline": True}),
        ("fx.csv", "a,b\n1,'it\\'s\nso'\n2,x", {"multiline": True, "quote": "'", "escape": "\\"}),
        ("fx.csv.gz", gzip.compress(TEXT.encode(), mtime=0), {}),
        ("fx.csv", gzip.compress(TEXT.encode(), mtime=0), {"compression": "gzip"}),
        ("fx.csv", TEXT.encode("utf-16"), {"encoding": "utf-16"}),
    ],
)
def test_rows_are_counted_without_spark(
    site: Site, name: str, text: str | bytes, options: dict[str, Any]
) -> None:
    land(site, name, text)
    announce(site, {"rows": 2, "files": [name]})
    assert verify(site, feed(manifest={"kind": "json"}, options=options)).rows == 2
    announce(site, {"rows": 3, "files": [name]})
    with pytest.raises(DeliveryRejectedError, match="says rows 3, found 2"):
        verify(site, feed(manifest={"kind": "json"}, options=options))


def test_a_file_in_another_encoding_is_rejected(site: Site) -> None:
    land(site, text="as_of,rate\nZürich,1\n".encode("latin-1"))
    announce(site, {"rows": 1, "files": ["fx.csv"]})
    with pytest.raises(DeliveryRejectedError, match=r"fx\.csv is not UTF-8"):
        verify(site, feed(manifest={"kind": "json"}))
    land(site, "fx.csv.gz", gzip.compress(TEXT.encode())[:-9])
    announce(site, {"rows": 1, "files": ["fx.csv", "fx.csv.gz"]})
    with pytest.raises(DeliveryRejectedError, match=r"fx\.csv\.gz cannot be read"):
        verify(site, feed(manifest={"kind": "json"}, options={"encoding": "latin-1"}))


TRAILER = {"kind": "trailer", "prefix": "TRL", "rows_field": 2}


def test_a_trailer_gives_the_row_count(site: Site) -> None:
    land(site, text=f"{TEXT}TRL,2\n\n")
    land(site, "b.csv", "as_of,rate\nTRL,0")
    assert verify(site, feed(manifest=TRAILER)).rows == 2
    land(site, text=f"{TEXT}TRL,3\n")
    with pytest.raises(DeliveryRejectedError, match=r"fx\.csv: the manifest says rows 3, found 2"):
        verify(site, feed(manifest=TRAILER))


def test_a_trailer_may_contain_a_checksum_of_the_rows(site: Site) -> None:
    manifest = {**TRAILER, "delimiter": "|", "checksum_field": 3, "checksum": "md5"}
    land(site, text=f"{TEXT}TRL|2|{hashlib.md5(TEXT.encode()).hexdigest()}\n")
    assert verify(site, feed(manifest=manifest)).rows == 2
    land(site, text=f"{TEXT}TRL|2|beef\n")
    with pytest.raises(DeliveryRejectedError, match="says md5 beef, found"):
        verify(site, feed(manifest=manifest))


@pytest.mark.parametrize(
    ("trailer", "reason"),
    [("TRL,two", "the row count must be a whole number; got 'two'"), ("TRL", "has no field 2")],
)
def test_a_trailer_without_a_row_count_is_rejected(site: Site, trailer: str, reason: str) -> None:
    land(site, text=f"{TEXT}{trailer}\n")
    with pytest.raises(DeliveryRejectedError, match=reason):
        verify(site, feed(manifest=TRAILER))


def test_a_file_without_its_trailer_is_incomplete(site: Site) -> None:
    land(site)
    with pytest.raises(DeliveryIncompleteError, match=r"fx\.csv does not end with a trailer"):
        verify(site, feed(manifest=TRAILER))


def test_a_trailer_of_a_fixed_width_file_is_split_at_blanks(site: Site) -> None:
    put(site.root / "in/2026-09-01.txt", "A1\nB2\nT   2\n")
    version = make_version(
        format="fixed_width",
        location="in/{business_date}.txt",
        manifest={"kind": "trailer"},
        schema=[{"name": "id", "type": "string", "width": 2}],
    )
    fixed = FixedWidthFormat()
    delivery = fixed.find(site, version)
    assert delivery is not None
    assert fixed.verify(site, NO_SPARK, version, delivery).rows == 2


CONTROL = {
    "kind": "control",
    "path": "landing/{business_date}.ctl",
    "checksum_name": "md5",
    "checksum": "md5",
}


def test_a_control_file_gives_row_count_and_checksum(site: Site) -> None:
    land(site)
    with pytest.raises(DeliveryIncompleteError, match=r"2026-09-01\.ctl is missing"):
        verify(site, feed(manifest=CONTROL))
    control = site.root / "landing/2026-09-01.ctl"
    digest = hashlib.md5(TEXT.encode()).hexdigest()
    put(control, f"feed = fx\nrows = 2\nmd5 = {digest}\n")
    assert verify(site, feed(manifest=CONTROL)).rows == 2
    put(control, f"rows=3\nmd5={digest}\n")
    with pytest.raises(DeliveryRejectedError, match="says rows 3, found 2"):
        verify(site, feed(manifest=CONTROL))
    put(control, "rows=2\nmd5=beef\n")
    with pytest.raises(DeliveryRejectedError, match="says md5 beef, found"):
        verify(site, feed(manifest=CONTROL))
    put(control, "rows=2\n")
    with pytest.raises(DeliveryRejectedError, match="it has no line for 'md5'"):
        verify(site, feed(manifest=CONTROL))
    put(control, f"rows=two\nmd5={digest}\n")
    with pytest.raises(DeliveryRejectedError, match="invalid number of rows: 'two'"):
        verify(site, feed(manifest=CONTROL))


def as_nobody(act: Callable[[], str]) -> str:
    """Run a function as a user without rights, in a child process, as root reads all."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
            answer = act()
        except BaseException as error:  # noqa: BLE001 - the parent asserts on it
            answer = f"{type(error).__name__}: {error}"
        os.write(theirs, answer.encode())
        os._exit(0)
    os.close(theirs)
    os.waitpid(child, 0)
    with os.fdopen(ours) as answer_of_child:
        return answer_of_child.read()


@pytest.mark.parametrize("shut", ["fx.csv", "."])
def test_a_delivery_that_floe_may_not_read_is_incomplete(shut: str) -> None:
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        site = make_site(Path(folder))
        path = land(site)
        (path.parent / shut).chmod(0)

        def look() -> str:
            with foreign_read(site, "market.fx"):
                return str(CSV.find(site, feed()))

        outcome = as_nobody(look)
        (path.parent / shut).chmod(0o700)
    assert outcome.startswith("DeliveryIncompleteError"), outcome
    assert "cannot be read: permission denied; give the user '" in outcome


def test_a_loop_of_links_does_not_cause_an_endless_search(site: Site) -> None:
    path = land(site)
    for name in ("one", "two"):
        (path.parent / name).symlink_to(".")
    version = make_version("market.fx", format="csv", location="landing/**/*.csv")
    assert [file["name"] for file in find(site, version).details["files"]] == [
        "fx/2026-09-01/fx.csv"
    ]


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        (ValueError("bad\nthing"), DeliveryRejectedError, "it cannot be read: ValueError: bad"),
        (RecursionError(), DeliveryRejectedError, "RecursionError"),
        (OSError(5, "Input/output error", "/x/fx.csv"), DeliveryIncompleteError, "fx.csv cannot"),
        (EOFError("cut"), DeliveryRejectedError, "EOFError: cut"),
        (SettingMissingError(), DeliveryIncompleteError, "No password"),
    ],
)
def test_any_error_while_reading_a_delivery_becomes_a_reason(
    site: Site, error: Exception, kind: type[Exception], reason: str
) -> None:
    with pytest.raises(kind) as caught, foreign_read(site, "market.fx"):
        raise error
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("error", [CancelledError("stop"), SparkUnavailableError("gone")])
def test_errors_not_caused_by_the_delivery_pass_through(site: Site, error: Exception) -> None:
    with pytest.raises(type(error)), foreign_read(site, "market.fx"):
        raise error


JUNK: list[Any] = [
    None, True, 0, -1, 10**30, 1.5, float("nan"), float("inf"), "", "fx.csv", "\ud800", "a\0b",
    "x" * 10_000, [], [[]], [None], {}, {"name": None}, {"name": ["fx.csv"]}, {"": {}},
]  # fmt: skip


def outcome(site: Site, version: StoredVersion) -> str:
    """Return whether a delivery is taken or why not; raise unexpected errors."""
    try:
        verify(site, version)
    except (DeliveryRejectedError, DeliveryIncompleteError) as error:
        printable = one_line(error.reason).isprintable()
        return type(error).__name__ if printable else f"not printable: {error.reason!r}"
    return "taken"


def test_any_manifest_content_is_accepted_or_rejected_with_a_reason(site: Site) -> None:
    land(site)
    whole: dict[str, Any] = {"files": [entry(size=len(TEXT))], "rows": 2}
    odd = [
        {**whole, name: junk} for name in ("files", "rows", "checksum", "sha256") for junk in JUNK
    ]
    fields = (*entry(), "size", "algorithm", "md5", "path")
    odd += [{**whole, "files": [entry(**{name: junk})]} for name in fields for junk in JUNK]
    odd += [{**whole, "files": {"fx.csv": junk}} for junk in JUNK] + JUNK
    version = feed(manifest=JSON)
    seen = set()
    for content in odd:
        announce(site, json.dumps(content))
        seen.add(outcome(site, version))
    assert seen == {"taken", "DeliveryRejectedError"}


@pytest.mark.parametrize("kind", ["json", "control", "trailer"])
def test_any_manifest_bytes_are_accepted_or_rejected_with_a_reason(site: Site, kind: str) -> None:
    # A fixed seed, so that a failure can be reproduced.
    dice = Random(17)
    control = site.root / "landing/2026-09-01.ctl"
    texts = {
        "json": json.dumps({"files": [entry()], "rows": 2}).encode(),
        "control": f"rows=2\nmd5={hashlib.md5(TEXT.encode()).hexdigest()}\n".encode(),
        "trailer": f"{TEXT}TRL,2\n".encode(),
    }
    version = feed(manifest={"json": JSON, "control": CONTROL, "trailer": TRAILER}[kind])
    for _ in range(300):
        content = bytearray(texts[kind])
        for _ in range(dice.randint(1, 4)):
            content[dice.randrange(len(content))] = dice.randrange(256)
        content = content[: dice.randint(1, len(content))] if dice.random() < 0.3 else content
        land(site, text=bytes(content) if kind == "trailer" else TEXT)
        if kind == "json":
            put(site.root / "landing/fx/2026-09-01/manifest.json", bytes(content))
        if kind == "control":
            put(control, bytes(content))
        assert not outcome(site, version).startswith("not printable")
