"""Make the site: ``python -m trainmem.site FOLDER``."""

import argparse
import sys
from pathlib import Path

from trainmem.site.build import build

parser = argparse.ArgumentParser(prog="python -m trainmem.site", description=__doc__)
parser.add_argument(
    "folder", type=Path, help="where the site goes; the files of a site that is there are replaced, others stay"
)
folder = parser.parse_args().folder
try:
    size_bytes = build(folder)
except ValueError as wrong:
    sys.exit(f"no site was made: {wrong}")
except OSError as wrong:
    sys.exit(f"the site in {folder} is missing or not whole: {wrong}; mend that and run this again")
print(f"{folder}: {size_bytes / 1e6:.1f} MB; open {folder / 'index.html'}")
