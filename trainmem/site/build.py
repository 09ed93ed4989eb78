"""The whole site into a folder."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from trainmem.figures.frame import STYLE
from trainmem.site.exporter import SiteExporter
from trainmem.site.moves import MOVES
from trainmem.site.packing import script
from trainmem.site.pages import PAGES

_STATIC = Path(__file__).with_name("static")

#: A file that GitHub Pages asks for, by which a folder is known as one that was made here.
_MARK = ".nojekyll"


def build(folder: Path) -> int:
    """Write the site into ``folder`` and return its size in bytes.

    A site that is there is replaced. Raises ``ValueError`` where the folder holds something else, or a source has a
    link that leads nowhere or a formula that cannot be read.
    """
    if folder.exists() and any(folder.iterdir()) and not (folder / _MARK).exists():
        raise ValueError(f"{folder} holds files that are no site: name an empty folder or a new one")
    files = _files()
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _files() -> Mapping[str, str | bytes]:
    """Every file of the site by its name."""
    moves = {name: made() for name, made in MOVES.items()}
    exporter = SiteExporter(moves)
    files: dict[str, str | bytes] = {_MARK: ""}
    for page in PAGES:
        about = {name: getattr(page, name) for name in ("file", "title", "about", "folder")}
        about |= {"pages": PAGES, "made_from": page.source}
        files[page.file], _ = exporter.from_notebook_node(page.notebook(), resources={"page": about})
    files |= {f"frames/{name}.js": script(name, figure) for name, figure in moves.items()}
    files |= {f"pictures/{path.name}": path.read_bytes() for path in exporter.pictures}
    files["site.css"] = STYLE + (_STATIC / "site.css").read_text("utf-8")
    files["site.js"] = (_STATIC / "site.js").read_text("utf-8")
    return files
