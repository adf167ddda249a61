"""Deliveries without Spark: fingerprints, and manifests that are right, wrong or not there yet."""

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
from floe.execution.cancelling import CancelledError
from floe.execution.formats.contract import (
    Delivery,
    DeliveryIncompleteError,
    DeliveryRejectedError,
    VersionPlace,
    VersionUnreadableError,
)
from floe.execution.formats.csv import CsvFormat
from floe.execution.formats.deliveries import unchanged_files
from floe.execution.formats.fixed_width import FixedWidthFormat
from floe.execution.formats.foreign import foreign_read, one_line
from floe.execution.site import Site
from floe.execution.spark.errors import SparkUnavailableError
from tests.execution.formats.places import make_place, make_site, put

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

CSV = CsvFormat()


class SettingMissingError(FloeError):
    def __init__(self) -> None:
        super().__init__("No password is set for the connection 'ref'.")


TEXT = "as_of,rate\n2026-09-01,1.5\n2026-09-01,2.5\n"
JSON = {"kind": "json", "checksum": "sha256"}
NO_SPARK = cast("SparkSession", None)


def feed(**spec: Any) -> VersionPlace:
    return make_place(
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


def find(site: Site, place: VersionPlace) -> Delivery:
    delivery = CSV.find(site, place)
    assert delivery is not None
    return delivery


def verify(site: Site, place: VersionPlace) -> Delivery:
    delivery = find(site, place)
    place = replace(place, path=delivery.path, details=delivery.details)
    return CSV.verify(site, NO_SPARK, place, delivery)


def test_nothing_there_is_no_delivery(site: Site) -> None:
    assert CSV.find(site, feed()) is None
    put(site.root / "landing/fx/2026-09-01/manifest.json", "{}")
    put(site.root / "landing/fx/2026-09-01/_fx.csv", "")
    assert CSV.find(site, feed(manifest=JSON)) is None


def test_a_delivery_is_known_by_its_files(site: Site) -> None:
    land(site)
    land(site, "late.csv", "as_of,rate\n")
    delivery = find(site, feed())
    assert delivery.path == str(site.root / "landing/fx/2026-09-01/*.csv*")
    assert delivery.size == len(TEXT) + 11
    assert [file["name"] for file in delivery.details["files"]] == ["fx.csv", "late.csv"]
    assert delivery.details["files"][0]["sha256"] == hashlib.sha256(TEXT.encode()).hexdigest()


def test_a_touched_file_keeps_the_fingerprint_and_a_changed_one_does_not(site: Site) -> None:
    path = land(site)
    first = find(site, feed()).fingerprint
    os.utime(path, ns=(1, 1))
    assert find(site, feed()).fingerprint == first
    land(site, text=TEXT.replace("1.5", "1.6"))
    assert find(site, feed()).fingerprint != first
    land(site)
    land(site, "more.csv")
    assert find(site, feed()).fingerprint != first


def test_a_file_that_looks_the_same_is_not_read_again(site: Site) -> None:
    path = land(site)
    place = replace(feed(), details=find(site, feed()).details)
    place.details["files"][0]["sha256"] = "remembered"
    assert find(site, place).details["files"][0]["sha256"] == "remembered"
    os.utime(path, ns=(1, 1))
    assert find(site, place).details["files"][0]["sha256"] != "remembered"


def test_a_corrected_manifest_makes_a_new_delivery(site: Site) -> None:
    land(site)
    announce(site, {"files": [entry(rows=3)], "made_at": "07:00"})
    place = feed(manifest=JSON)
    wrong = find(site, place).fingerprint
    announce(site, {"files": [entry(rows=2)], "made_at": "07:00"})
    right = find(site, place).fingerprint
    assert wrong != right
    announce(site, {"files": [entry(rows=2)], "made_at": "08:00"})
    assert find(site, place).fingerprint == right


def test_a_directory_is_a_location_too(site: Site) -> None:
    land(site)
    land(site, "sub/more.csv")
    place = make_place("market.fx", format="csv", location="landing/fx/{business_date}")
    assert [file["name"] for file in find(site, place).details["files"]] == [
        "fx.csv",
        "sub/more.csv",
    ]


def test_what_was_delivered_must_stay_as_it_was(site: Site) -> None:
    path = land(site)
    place = replace(feed(), details=find(site, feed()).details)
    os.utime(path, ns=(1, 1))
    assert unchanged_files(place) == [path]
    land(site, text=TEXT.replace("1.5", "1.6"))
    with pytest.raises(VersionUnreadableError, match=r"fx\.csv was changed after"):
        unchanged_files(place)
    path.unlink()
    with pytest.raises(VersionUnreadableError, match=r"fx\.csv was removed after"):
        unchanged_files(place)


def test_a_delivery_as_its_manifest_says_is_taken(site: Site) -> None:
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
def test_manifests_are_read_in_the_spellings_of_others(site: Site, content: Any) -> None:
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
        ({"files": [{"rows": 2}]}, "names no file"),
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


def test_a_delivery_without_its_manifest_may_still_be_completed(site: Site) -> None:
    land(site)
    with pytest.raises(DeliveryIncompleteError, match=r"manifest\.json is missing"):
        verify(site, feed(manifest=JSON))


def test_a_manifest_may_lie_elsewhere(site: Site) -> None:
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


def test_a_trailer_says_how_many_rows_came_before_it(site: Site) -> None:
    land(site, text=f"{TEXT}TRL,2\n\n")
    land(site, "b.csv", "as_of,rate\nTRL,0")
    assert verify(site, feed(manifest=TRAILER)).rows == 2
    land(site, text=f"{TEXT}TRL,3\n")
    with pytest.raises(DeliveryRejectedError, match=r"fx\.csv: the manifest says rows 3, found 2"):
        verify(site, feed(manifest=TRAILER))


def test_a_trailer_may_hold_a_checksum_of_what_came_before(site: Site) -> None:
    manifest = {**TRAILER, "delimiter": "|", "checksum_field": 3, "checksum": "md5"}
    land(site, text=f"{TEXT}TRL|2|{hashlib.md5(TEXT.encode()).hexdigest()}\n")
    assert verify(site, feed(manifest=manifest)).rows == 2
    land(site, text=f"{TEXT}TRL|2|beef\n")
    with pytest.raises(DeliveryRejectedError, match="says md5 beef, found"):
        verify(site, feed(manifest=manifest))


@pytest.mark.parametrize(
    ("trailer", "reason"),
    [("TRL,two", "'two' where the row count should be"), ("TRL", "has no field 2")],
)
def test_a_trailer_that_says_nothing_is_rejected(site: Site, trailer: str, reason: str) -> None:
    land(site, text=f"{TEXT}{trailer}\n")
    with pytest.raises(DeliveryRejectedError, match=reason):
        verify(site, feed(manifest=TRAILER))


def test_a_file_without_its_trailer_is_still_on_its_way(site: Site) -> None:
    land(site)
    with pytest.raises(DeliveryIncompleteError, match=r"fx\.csv does not end with a trailer"):
        verify(site, feed(manifest=TRAILER))


def test_a_trailer_of_a_fixed_width_file_is_split_at_blanks(site: Site) -> None:
    put(site.root / "in/2026-09-01.txt", "A1\nB2\nT   2\n")
    place = make_place(
        format="fixed_width",
        location="in/{business_date}.txt",
        manifest={"kind": "trailer"},
        schema=[{"name": "id", "type": "string", "width": 2}],
    )
    fixed = FixedWidthFormat()
    delivery = fixed.find(site, place)
    assert delivery is not None
    assert fixed.verify(site, NO_SPARK, place, delivery).rows == 2


CONTROL = {
    "kind": "control",
    "path": "landing/{business_date}.ctl",
    "checksum_name": "md5",
    "checksum": "md5",
}


def test_a_control_file_says_rows_and_checksum(site: Site) -> None:
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
    """Do something as a user without any rights, in a process of its own; root may read all."""
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
def test_what_floe_may_not_read_is_missing_until_it_may(shut: str) -> None:
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        site = make_site(Path(folder))
        path = land(site)
        (path.parent / shut).chmod(0)

        def look() -> str:
            with foreign_read(site, "market.fx"):
                return str(CSV.find(site, feed()))

        said = as_nobody(look)
        (path.parent / shut).chmod(0o700)
    assert said.startswith("DeliveryIncompleteError"), said
    assert "cannot be read: permission denied; give the user '" in said


def test_a_loop_of_links_is_not_walked_for_ever(site: Site) -> None:
    path = land(site)
    for name in ("one", "two"):
        (path.parent / name).symlink_to(".")
    place = make_place("market.fx", format="csv", location="landing/**/*.csv")
    assert [file["name"] for file in find(site, place).details["files"]] == ["fx/2026-09-01/fx.csv"]


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        (ValueError("bad\nthing"), DeliveryRejectedError, "it cannot be read: ValueError: bad"),
        (RecursionError(), DeliveryRejectedError, "RecursionError"),
        (OSError(5, "Input/output error", "/x/fx.csv"), DeliveryIncompleteError, "fx.csv cannot"),
        (EOFError("cut"), DeliveryRejectedError, "EOFError: cut"),
        (SettingMissingError(), DeliveryIncompleteError, "No password"),
    ],
)
def test_whatever_is_raised_while_a_delivery_is_read_becomes_a_reason(
    site: Site, error: Exception, kind: type[Exception], told: str
) -> None:
    with pytest.raises(kind) as caught, foreign_read(site, "market.fx"):
        raise error
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("error", [CancelledError("stop"), SparkUnavailableError("gone")])
def test_what_is_not_the_fault_of_a_delivery_passes_through(site: Site, error: Exception) -> None:
    with pytest.raises(type(error)), foreign_read(site, "market.fx"):
        raise error


JUNK: list[Any] = [
    None, True, 0, -1, 10**30, 1.5, float("nan"), float("inf"), "", "fx.csv", "\ud800", "a\0b",
    "x" * 10_000, [], [[]], [None], {}, {"name": None}, {"name": ["fx.csv"]}, {"": {}},
]  # fmt: skip


def outcome(site: Site, place: VersionPlace) -> str:
    """What becomes of a delivery; anything but a clear answer is raised."""
    try:
        verify(site, place)
    except (DeliveryRejectedError, DeliveryIncompleteError) as error:
        printable = one_line(error.reason).isprintable()
        return type(error).__name__ if printable else f"not printable: {error.reason!r}"
    return "taken"


def test_no_content_of_a_manifest_is_too_odd_for_a_reason(site: Site) -> None:
    land(site)
    whole: dict[str, Any] = {"files": [entry(size=len(TEXT))], "rows": 2}
    odd = [
        {**whole, name: junk} for name in ("files", "rows", "checksum", "sha256") for junk in JUNK
    ]
    fields = (*entry(), "size", "algorithm", "md5", "path")
    odd += [{**whole, "files": [entry(**{name: junk})]} for name in fields for junk in JUNK]
    odd += [{**whole, "files": {"fx.csv": junk}} for junk in JUNK] + JUNK
    place = feed(manifest=JSON)
    seen = set()
    for content in odd:
        announce(site, json.dumps(content))
        seen.add(outcome(site, place))
    assert seen == {"taken", "DeliveryRejectedError"}


@pytest.mark.parametrize("kind", ["json", "control", "trailer"])
def test_no_bytes_of_a_manifest_are_too_odd_for_a_reason(site: Site, kind: str) -> None:
    # The same numbers each time: a failure can be looked at again.
    dice = Random(17)
    control = site.root / "landing/2026-09-01.ctl"
    texts = {
        "json": json.dumps({"files": [entry()], "rows": 2}).encode(),
        "control": f"rows=2\nmd5={hashlib.md5(TEXT.encode()).hexdigest()}\n".encode(),
        "trailer": f"{TEXT}TRL,2\n".encode(),
    }
    place = feed(manifest={"json": JSON, "control": CONTROL, "trailer": TRAILER}[kind])
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
        assert not outcome(site, place).startswith("not printable")
