"""nbconvert's exporter, with what the site does its own way: formulas, links, figures, checks, no foreign scripts."""

import re
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from bs4 import BeautifulSoup
from jinja2 import pass_context
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode

from trainmem.review import QUICK_CHECKS
from trainmem.review.folded import WITHOUT_BUTTONS
from trainmem.site import links
from trainmem.site.checks import check_html
from trainmem.site.formulas import mathml
from trainmem.site.moves import Moves
from trainmem.site.packing import sections

_HERE = Path(__file__).parent
_FIGURE = re.compile(r"figures\.(\w+)\(\)")
_CHECK = re.compile(r'quick_check\("([\w-]+)"\)')
_STILL = re.compile(r"<details><summary>.*?</summary>\s*!\[.*?\]\(\S+\)\s*(?P<sentence>.*?)\s*</details>", re.DOTALL)
# A formula and the brackets and stops that touch it: no line may end between them.
_FORMULA = re.compile(r'[(“]*<math[^>]*display="inline">(?:(?!</math>).)*</math>[.,;:)”]*')


class Renderer(IPythonRenderer):
    """Markdown to HTML for the site. ``folder`` is where the source lies; ``pictures`` collects what it shows."""

    def __init__(self, folder: str, pictures: set[Path]) -> None:
        super().__init__(escape=False, exclude_anchor_links=True)
        self.folder, self.pictures = folder, pictures

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        """With the anchor that Jupyter gives it."""
        words = BeautifulSoup(text, "html.parser").get_text()
        return f'<h{level} id="{escape(words.replace(" ", "-"))}">{text}</h{level}>\n'

    def inline_math(self, body: str) -> str:
        """In a line."""
        return mathml(body)

    def block_math(self, body: str) -> str:
        """On a line of its own."""
        return f'<span class="formula scrolls">{mathml(body, block=True)}</span>'

    def table(self, text: str) -> str:
        """In a box that scrolls where the screen is narrow. An empty cell heads nothing."""
        text = re.sub(r"<th([^>]*)></th>", r"<td\1></td>", text)
        return f'<div class="scrolls"><table>{text}</table></div>\n'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """To a page of the site, or to the repository."""
        return super().link(text, links.leads_to(url, self.folder), title)

    def image(self, text: str, url: str, title: str | None = None) -> str:
        """A file of the site; of a picture that lies elsewhere, what it shows in words."""
        path = links.picture(url, self.folder)
        if path is None:
            return text
        self.pictures.add(path)
        return super().image(text, f"pictures/{path.name}", title)


class SiteExporter(HTMLExporter):
    """A notebook to a page. Give ``resources={"page": …}`` for what the template needs (see `trainmem.site.pages`).

    ``moves`` are the figures that can be shown; ``pictures`` collects the image files that pages use.
    """

    def __init__(self, moves: dict[str, Moves]) -> None:
        self.moves = moves
        self.pictures: set[Path] = set()
        super().__init__(
            template_name="template",
            extra_template_basedirs=[str(_HERE)],
            exclude_anchor_links=True,
        )

    def default_filters(self) -> Any:
        """nbconvert's, and the site's."""
        yield from super().default_filters()
        yield "markdown2html", self._markdown

    @pass_context
    def _markdown(self, context: Any, source: str) -> str:
        page = context.get("resources")["page"]
        html = MarkdownWithMath(renderer=Renderer(page["folder"], self.pictures)).render(source)
        return _FORMULA.sub(r'<span class="whole">\g<0></span>', html)

    def from_notebook_node(
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, **options: Any
    ) -> tuple[str, dict[str, Any]]:
        """The page, and the resources with ``page["figures"]``, the names of the figures on it.

        Raises ``ValueError`` where ``resources`` do not say which page it is.
        """
        if not (resources or {}).get("page"):
            raise ValueError('a page needs resources={"page": …}: its file, title, about, folder and source')
        cells, shown = self._cells(nb.cells)
        resources["page"]["figures"] = shown
        notebook = nbformat.v4.new_notebook(cells=cells, metadata=nb.metadata)
        text, resources = super().from_notebook_node(notebook, resources)
        soup = BeautifulSoup(text, "html.parser")
        contents = soup.select_one("#contents ul")
        headings = soup.select("main h2[id]")
        if len(headings) > 2:
            for heading in headings:
                item, link = soup.new_tag("li"), soup.new_tag("a", href=f"#{heading['id']}")
                link.string = heading.get_text()
                item.append(link)
                contents.append(item)
        else:
            soup.select_one("#contents").decompose()
        return str(soup), resources

    def _cells(self, cells: list[NotebookNode]) -> tuple[list[NotebookNode], list[str]]:
        """The cells with what the template is to show in place of a widget, and the names of the figures."""
        made, shown = [], []
        for cell in cells:
            cell = nbformat.from_dict(cell)
            figure, check = _FIGURE.fullmatch(cell.source.strip()), _CHECK.fullmatch(cell.source.strip())
            still = _STILL.fullmatch(cell.source.strip())
            if cell.cell_type == "code" and figure and figure[1] in self.moves:
                shown.append(figure[1])
                cell.metadata["site"] = {"figure": self._figure(figure[1])}
            elif cell.cell_type == "code" and check:
                cell.metadata["site"] = {"check": check_html(QUICK_CHECKS[check[1]])}
            elif cell.cell_type == "markdown" and cell.source.startswith(WITHOUT_BUTTONS):
                continue  # the choices above unfold by themselves
            elif cell.cell_type == "markdown" and still:
                cell.source = still["sentence"]
                cell.metadata["site"] = {"caption": True}
            elif cell.cell_type == "code":
                drawn = "figures." in cell.source
                checked = "raises-exception" in cell.metadata.get("tags", []) and not drawn
                hidden = cell.id == "setup" or cell.metadata.get("jupyter", {}).get("source_hidden", False)
                cell.metadata["site"] = {
                    "folded": "The check" if checked else "Code of this cell" if hidden else "",
                    "needs_kernel": drawn and not hidden,
                }
            made.append(cell)
        return made, shown

    def _figure(self, name: str) -> dict[str, Any]:
        moves = self.moves[name]
        first = moves.presets[0]
        return {
            "name": name,
            "title": moves.title,
            "slider": moves.slider,
            "presets": [preset.title for preset in moves.presets],
            "start": first.start,
            "last": len(first.frames) - 1,
            "at": first.frames[first.start].at,
            "sections": sections(first.frames[first.start]),
        }
