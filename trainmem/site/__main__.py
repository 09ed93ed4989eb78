"""Make the site: ``python -m trainmem.site FOLDER``."""

import argparse
import sys
from pathlib import Path

from trainmem.site.build import build

parser = argparse.ArgumentParser(prog="python -m trainmem.site", description=__doc__)
parser.add_argument("folder", type=Path, help="where the site goes; a site that is there already is replaced")
folder = parser.parse_args().folder
try:
    size_bytes = build(folder)
except ValueError as wrong:
    sys.exit(f"no site was made: {wrong}")
print(f"{folder}: {size_bytes / 1e6:.1f} MB; open {folder / 'index.html'}")
