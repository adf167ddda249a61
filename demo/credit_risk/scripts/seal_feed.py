"""Write a receipt for a feed: its files with their checksums, as the regulator's gateway requires.

A typical legacy script. The only part of floe it uses is the file named by FLOE_RUN_FILE, which
has the paths of its inputs and outputs and the business date.
"""

import hashlib
import json
import os
from pathlib import Path


def main() -> None:
    run = json.loads(Path(os.environ["FLOE_RUN_FILE"]).read_text(encoding="utf-8"))
    feed = Path(run["inputs"]["feed"]["path"])
    receipt = Path(run["outputs"]["receipt"]["path"]) / "receipt.json"
    files = sorted(path for path in feed.rglob("*.csv") if path.is_file())
    sealed = {
        "business_date": run["business_date"],
        "files": [{"name": path.name, "sha256": checksum(path)} for path in files],
    }
    receipt.parent.mkdir(parents=True, exist_ok=True)
    receipt.write_text(json.dumps(sealed, indent=2), encoding="utf-8")


def checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
