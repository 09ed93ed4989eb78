"""Write the static pictures: ``python -m trainmem.figures [folder]`` (notebooks/figures by default)."""

import sys
from pathlib import Path

from trainmem.figures.static import static_pictures

folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "notebooks" / "figures"
folder.mkdir(parents=True, exist_ok=True)
for name, text in static_pictures().items():
    (folder / name).write_text(text, "utf-8")
    print(f"wrote {folder / name}")
