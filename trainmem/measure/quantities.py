"""Bytes and parts for people."""


def size(nbytes: float) -> str:
    """GB = 10⁹ bytes from a tenth of it on, MB = 10⁶ below.

    >>> size(3_825_205_248), size(12_000_000)
    ('3.83 GB', '12.00 MB')
    """
    return f"{nbytes / 1e9:.2f} GB" if nbytes >= 1e8 else f"{nbytes / 1e6:.2f} MB"


def part(value: float | None, digits: int = 0) -> str:
    """A part as a percentage with its sign; a dash where there is none.

    >>> part(1 / 3), part(-0.021, 1), part(None)
    ('+33%', '−2.1%', '—')
    """
    if value is None:
        return "—"
    return f"{round(value * 100, digits) + 0.0:+.{digits}f}%".replace("-", "−")  # + 0.0 turns −0 into 0
