"""How the figures write amounts."""


def gb(nbytes: float) -> str:
    """Bytes in GB (10⁹): three figures at least, "0" for nothing.

    >>> gb(199_539_000_000), gb(30_000_000_000), gb(3_293_642_752), gb(33_554_432), gb(0)
    ('199.5 GB', '30.0 GB', '3.29 GB', '0.034 GB', '0 GB')
    """
    return f"{in_gb(nbytes)} GB"


def in_gb(nbytes: float) -> str:
    """The same without the unit."""
    return _rounded(nbytes / 1e9) if nbytes else "0"


def number(value: float) -> str:
    """A number for people: one digit after the point from 10 on, two from 1 on, three below, six for small ones.

    >>> number(110.7), number(34), number(2.04), number(1/3), number(1234.5), number(2/8192)
    ('110.7', '34', '2.04', '0.333', '1,234.5', '0.000244')
    """
    words = _rounded(value)
    return words.rstrip("0").rstrip(".") if "." in words else words


def _rounded(value: float) -> str:
    size = abs(value)
    places = 1 if size >= 9.995 else 2 if size >= 0.9995 else 3 if size >= 0.00995 else 6
    return f"{value:,.{places}f}"


def table(caption: str, columns: list[str], rows: list[list[str]], *, spare: int = -1, words: int = -1) -> str:
    """An HTML table; the first cell of each row is its heading.

    Column ``spare`` is left out on a small screen; column ``words`` holds words, not numbers.
    """
    marks = {spare: ' class="spare"', words: ' class="words"'}

    def cell(kind: str, i: int, content: str, more: str = "") -> str:
        return f"<{kind}{more}{marks.get(i, '')}>{content}</{kind}>"

    head = "".join(cell("th", i, words, ' scope="col"') for i, words in enumerate(columns))
    body = "".join(
        "<tr>"
        + cell("th", 0, first, ' scope="row"')
        + "".join(cell("td", i, x) for i, x in enumerate(rest, 1))
        + "</tr>"
        for first, *rest in rows
    )
    return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
