"""How the figures write amounts."""


def gb(nbytes: float) -> str:
    """Bytes in GB (10⁹): three figures at least, "0" for nothing.

    >>> gb(199_539_000_000), gb(3_293_642_752), gb(33_554_432), gb(0)
    ('199.5 GB', '3.29 GB', '0.034 GB', '0 GB')
    """
    return f"{number(nbytes / 1e9)} GB"


def number(value: float) -> str:
    """A number for people: one digit after the point from 10 on, two from 1 on, three below.

    >>> number(110.7), number(34), number(2.04), number(1/3), number(1234.5)
    ('110.7', '34', '2.04', '0.333', '1,234.5')
    """
    places = 1 if abs(value) >= 9.995 else 2 if abs(value) >= 0.9995 else 3
    words = f"{value:,.{places}f}"
    return words.rstrip("0").rstrip(".") if "." in words else words


def table(caption: str, columns: list[str], rows: list[list[str]]) -> str:
    """An HTML table; the first cell of each row is its heading."""
    head = "".join(f'<th scope="col">{cell}</th>' for cell in columns)
    body = "".join(
        f'<tr><th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in rest) + "</tr>"
        for first, *rest in rows
    )
    return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
