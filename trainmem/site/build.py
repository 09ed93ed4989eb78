"""The whole site into a folder."""

from collections.abc import Mapping
from pathlib import Path

from trainmem.figures.frame import STYLE
from trainmem.site.exporter import SiteExporter
from trainmem.site.folder import listed, replace
from trainmem.site.moves import MOVES
from trainmem.site.packing import script
from trainmem.site.pages import PAGES

_STATIC = Path(__file__).with_name("static")


def build(folder: Path) -> int:
    """Write the site into ``folder`` and return its size in bytes.

    The files of a site that is there are replaced; all else in the folder stays. Raises ``ValueError``, and changes
    nothing, where the folder holds other files and no site or they stand in the way, or a source has a link that leads
    nowhere or a formula that cannot be read; ``OSError`` where a file cannot be read or written.
    """
    listed(folder)  # before the work, which takes seconds
    files = {name: text.encode() if isinstance(text, str) else text for name, text in _files().items()}
    replace(folder, files)
    return sum(map(len, files.values()))


def _files() -> Mapping[str, str | bytes]:
    """Every file of the site by its name."""
    moves = {name: made() for name, made in MOVES.items()}
    exporter = SiteExporter(moves)
    files: dict[str, str | bytes] = {".nojekyll": ""}  # GitHub Pages is to serve the files as they are
    for page in PAGES:
        about = {name: getattr(page, name) for name in ("file", "title", "about", "folder")}
        about |= {"pages": PAGES, "made_from": page.source}
        files[page.file], _ = exporter.from_notebook_node(page.notebook(), resources={"page": about})
    files |= {f"frames/{name}.js": script(name, figure) for name, figure in moves.items()}
    files |= {f"pictures/{path.name}": path.read_bytes() for path in exporter.pictures}
    files["site.css"] = STYLE + (_STATIC / "site.css").read_text("utf-8")
    files["site.js"] = (_STATIC / "site.js").read_text("utf-8")
    return files
