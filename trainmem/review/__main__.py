"""Write the recall cards for Anki: ``python -m trainmem.review export [FOLDER]``."""

import argparse
import sys
from pathlib import Path

from trainmem.review import CARDS
from trainmem.review.export import write_csv, write_package


def main(arguments: list[str] | None = None) -> int:
    """Write `trainmem.csv` and `trainmem.apkg`; return 1 where a file could not be written."""
    parser = argparse.ArgumentParser(prog="python -m trainmem.review")
    export = parser.add_subparsers(required=True, metavar="export").add_parser(
        "export", help="write the recall cards for Anki: trainmem.apkg and trainmem.csv"
    )
    export.add_argument("folder", nargs="?", type=Path, default=Path(), help="where to (default: here)")
    folder = parser.parse_args(arguments).folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for write, path in ((write_csv, folder / "trainmem.csv"), (write_package, folder / "trainmem.apkg")):
            write(CARDS, path)
            print(f"wrote {path}: {len(CARDS)} cards")
        print("Import one of the two in Anki (File, Import), and later editions with the same one: your history stays.")
    except ImportError:
        print("no trainmem.apkg: genanki is missing (pip install genanki). Anki reads the .csv too.", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{error.filename or folder} could not be written: {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
