"""Verify a delivery against its manifest, before a row is read."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from floe.execution.formats.checksums import file_checksum, joint_checksum, same_checksum
from floe.execution.formats.contract import (
    Delivery,
    DeliveryIncompleteError,
    DeliveryRejectedError,
    VersionPlace,
)
from floe.execution.formats.manifests.finding import manifest_file, read_manifest, read_promise
from floe.execution.formats.manifests.promise import Promise, PromisedFile, PromiseError
from floe.execution.formats.manifests.reading import Reading
from floe.execution.formats.manifests.trailer import checksum_before, parse_trailer, read_trailer
from floe.execution.formats.text import UnreadableTextError
from floe.execution.site import Site
from floe.spec.datasets import JsonManifest, TrailerManifest


def verify_delivery(
    site: Site, place: VersionPlace, delivery: Delivery, reading: Reading
) -> Delivery:
    """Return a delivery with the rows that its manifest promises, if all it promises is so."""
    verifier = _Verifier(site, place, delivery, reading)
    try:
        rows = verifier.verify()
    except UnreadableTextError as error:
        raise DeliveryRejectedError(place.dataset, f"{error.reason}.") from error
    return delivery if rows is None else replace(delivery, rows=rows)


class _Verifier:
    """The comparison of one delivery with its promise."""

    def __init__(self, site: Site, place: VersionPlace, delivery: Delivery, reading: Reading):
        self._site = site
        self._place = place
        self._reading = reading
        self._folder = Path(str(delivery.details["folder"]))
        self._files: dict[str, Any] = {file["name"]: file for file in delivery.details["files"]}
        self._counts: dict[str, int | None] = {}

    def verify(self) -> int | None:
        manifest = self._place.spec.manifest
        if manifest is None:
            return None
        if isinstance(manifest, TrailerManifest):
            return sum(self._verify_trailer(name, manifest) for name in self._files)
        promise = self._read()
        if isinstance(manifest, JsonManifest):
            self._check_says_all(promise, manifest)
        self._check_files(promise)
        self._check_total(promise)
        return promise.total_rows

    def _read(self) -> Promise:
        path = manifest_file(self._site, self._place, self._folder)
        if path is None or not path.is_file():
            reason = f"{path.name if path else 'the manifest'} is missing."
            raise DeliveryIncompleteError(self._place.dataset, reason)
        try:
            return read_promise(self._place, read_manifest(path))
        except PromiseError as error:
            raise self._rejected(f"{path.name} cannot be read: {error}.") from error

    def _check_says_all(self, promise: Promise, manifest: JsonManifest) -> None:
        if manifest.files and promise.files is None:
            raise self._rejected("the manifest lists no files.")
        if manifest.rows and promise.total_rows is None:
            raise self._rejected("the manifest gives no row counts.")
        unsigned = [file.name for file in promise.files or () if file.checksum is None]
        if manifest.checksum and (unsigned or promise.files is None) and promise.checksum is None:
            named = f" for {unsigned[0]}" if unsigned else ""
            raise self._rejected(f"the manifest gives no {manifest.checksum}{named}.")

    def _check_files(self, promise: Promise) -> None:
        if promise.files is None:
            return
        listed = {file.name: file for file in promise.files}
        for name in listed:
            if name not in self._files:
                # A file may be on its way still, but the manifest comes last: it said all is there.
                raise self._rejected(f"{name} is in the manifest and was not delivered.")
        for name in self._files:
            if name not in listed:
                raise self._rejected(f"{name} was delivered and is not in the manifest.")
        for file in promise.files:
            self._check_file(file)

    def _check_file(self, file: PromisedFile) -> None:
        path, found = self._folder / file.name, self._files[file.name]
        if file.size is not None and file.size != found["size"]:
            raise self._mismatch(file.name, "bytes", file.size, found["size"])
        if file.checksum is not None and file.algorithm is not None:
            known = found["sha256"] if file.algorithm == "sha256" else None
            self._check_sum(
                file.name,
                file.algorithm,
                file.checksum,
                known or file_checksum(path, file.algorithm),
            )
        if file.rows is not None:
            self._check_rows(file.name, file.rows, self._count(file.name))

    def _check_total(self, promise: Promise) -> None:
        if promise.rows is not None:
            counts = [self._count(name) for name in self._files]
            known = [count for count in counts if count is not None]
            total = sum(known) if len(known) == len(counts) else None
            self._check_rows("all files together", promise.rows, total)
        if promise.checksum is not None and promise.algorithm is not None:
            paths = [self._folder / name for name in sorted(self._files)]
            found = joint_checksum(paths, promise.algorithm)
            self._check_sum("all files together", promise.algorithm, promise.checksum, found)

    def _verify_trailer(self, name: str, manifest: TrailerManifest) -> int:
        path, layout = self._folder / name, self._reading.layout
        line = read_trailer(path, layout, manifest)
        if line is None:
            reason = f"{name} does not end with a trailer '{manifest.prefix}'."
            raise DeliveryIncompleteError(self._place.dataset, reason)
        try:
            promised = parse_trailer(name, line, manifest, self._reading.delimiter)
        except PromiseError as error:
            raise self._rejected(f"{name} cannot be verified: {error}.") from error
        if promised.checksum and promised.algorithm:
            found = checksum_before(path, layout, promised.algorithm)
            self._check_sum(name, promised.algorithm, promised.checksum, found)
        self._check_rows(name, promised.rows, self._count(name))
        return promised.rows or 0

    def _count(self, name: str) -> int | None:
        if name not in self._counts:
            self._counts[name] = self._reading.count_rows(self._folder / name)
        return self._counts[name]

    def _check_rows(self, name: str, promised: int | None, found: int | None) -> None:
        # A format that only its own reader understands has no count before it is read.
        if promised is not None and found is not None and promised != found:
            raise self._mismatch(name, "rows", promised, found)

    def _check_sum(self, name: str, kind: str, promised: str, found: str) -> None:
        if not same_checksum(promised, found):
            raise self._mismatch(name, kind, promised, found)

    def _mismatch(
        self, name: str, what: str, promised: object, found: object
    ) -> DeliveryRejectedError:
        return self._rejected(f"{name}: the manifest says {what} {promised}, found {found}.")

    def _rejected(self, reason: str) -> DeliveryRejectedError:
        return DeliveryRejectedError(self._place.dataset, reason)
