"""Answers to stretch exercise 3: largest_micro_batch."""

# ruff: noqa: E501 - the answers are lines as students write them

from . import Wrong

PLAIN = {
    "largest_micro_batch": """
def largest_micro_batch(peak, gpu_bytes, free=0.15):
    b = 0
    while peak(b + 1) <= (1 - free) * gpu_bytes:
        b += 1
    return b
"""
}


def _whole(body: str) -> dict[str, str]:
    return {"largest_micro_batch": f"\ndef largest_micro_batch(peak, gpu_bytes, free=0.15):\n{body}"}


RIGHT = {
    "bisection": _whole("""
    budget = gpu_bytes * (1 - free)
    low, high = 0, 1
    while peak(high) <= budget:
        low, high = high, high * 2
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if peak(middle) <= budget else (low, middle)
    return low
"""),
    "itertools": _whole("""
    from itertools import count, takewhile

    return sum(1 for _ in takewhile(lambda b: peak(b) <= gpu_bytes - free * gpu_bytes, count(1)))
"""),
    "bisect over a range": _whole("""
    from bisect import bisect_right

    most = 1
    while peak(most) <= (1 - free) * gpu_bytes:
        most *= 10
    return bisect_right(range(1, most), (1 - free) * gpu_bytes, key=peak)
"""),
    "strides that shrink, NumPy": _whole("""
    import numpy as np

    budget, b = np.float64(gpu_bytes) * (1 - free), np.int64(0)
    for step in 2 ** np.arange(20)[::-1]:
        if peak(int(b + step)) <= budget:
            b += step
    return b
"""),
    "recursion": {
        "largest_micro_batch": """
def border(peak, budget, low, high):
    if high - low <= 1:
        return low
    middle = (low + high) // 2
    return border(peak, budget, *((middle, high) if peak(middle) <= budget else (low, middle)))

def largest_micro_batch(peak, gpu_bytes, free=0.15):
    budget = (1 - free) * gpu_bytes
    high = 1
    while not peak(high) > budget:
        high <<= 1
    return float(border(peak, budget, 0, high))
"""
    },
}

_LINE = """
    one = peak(1)
    each = peak(2) - one
    return max(0, int({budget} - (one - each)) // each)
"""


def _wrong(body: str, all_: str | None = None, limits: str | None = None, moments: str | None = None, **more) -> Wrong:
    names = ("check_largest_micro_batch", "check_largest_micro_batch_limits", "check_largest_micro_batch_moments")
    fails = {name: said for name, said in zip(names, (all_, limits, moments), strict=True) if said is not None}
    return Wrong(_whole(body), {name: said.removeprefix("-") for name, said in fails.items()})


def _search(condition: str, **fails: str) -> Wrong:
    return _wrong(f"\n    b = 0\n    while {condition}:\n        b += 1\n    return b\n", **fails)


# "-": the check fails with whatever message.
WRONG = {
    "free ignored": _search("peak(b + 1) <= gpu_bytes", all_="the free part is ignored", limits="-", moments="-"),
    "free added": _search(
        "peak(b + 1) <= (1 + free) * gpu_bytes", all_="the free part is added", limits="-", moments="-"
    ),
    "15% whatever is asked": _search(
        "peak(b + 1) <= 0.85 * gpu_bytes", all_="free is ignored and 15% is taken", limits="-", moments="-"
    ),
    "GiB": _search(
        "peak(b + 1) <= (1 - free) * gpu_bytes / 10**9 * 2**30", all_="a GiB is taken", limits="-", moments="-"
    ),
    "equality refused": _search(
        "peak(b + 1) < (1 - free) * gpu_bytes", limits="exactly as large as the budget is refused"
    ),
    "one more": _wrong(
        "\n    b = 1\n    while peak(b) <= (1 - free) * gpu_bytes:\n        b += 1\n    return b\n",
        all_="one more than fits",
        limits="-",
        moments="-",
    ),
    "one too few": _wrong(
        "\n    b = 1\n    while peak(b + 2) <= (1 - free) * gpu_bytes:\n        b += 1\n    return b\n",
        all_="the search ends one too early",
        limits="-",
        moments="-",
    ),
    "powers of two": _wrong(
        "\n    b = 1\n    while peak(2 * b) <= (1 - free) * gpu_bytes:\n        b *= 2\n    return b\n",
        all_="only powers of two",
        limits="-",
        moments="-",
    ),
    "up to 1024": _wrong(
        "\n    fits = [b for b in range(1, 1025) if peak(b) <= (1 - free) * gpu_bytes]\n    return max(fits, default=0)\n",
        limits="the search ends too early: more sequences fit",
    ),
    "up to 61": _wrong(
        "\n    fits = [b for b in range(1, 62) if peak(b) <= (1 - free) * gpu_bytes]\n    return max(fits, default=0)\n",
        all_="the search ends one too early",
        limits="the search ends too early: more sequences fit",
    ),
    "the first that fits": _wrong(
        "\n    return next(b for b in range(1, 999) if peak(b) <= (1 - free) * gpu_bytes)\n",
        all_="the first micro-batch that fits",
        limits="-",
        moments="-",
    ),
    "1 where nothing fits": _wrong(
        "\n    b = 1\n    while peak(b + 1) <= (1 - free) * gpu_bytes:\n        b += 1\n    return b\n",
        limits="1 is returned although not even one",
    ),
    "states grow with b": _wrong(
        "\n    return int((1 - free) * gpu_bytes // peak(1))\n",
        all_="as if the model states grew with b",
        limits="-",
        moments="as if the model states grew with b",
    ),
    "states forgotten": _wrong(
        "\n    return int((1 - free) * gpu_bytes // (peak(2) - peak(1)))\n",
        all_="the model states are forgotten",
        limits="-",
        moments="-",
    ),
    "a straight line": _wrong(
        _LINE.format(budget="(1 - free) * gpu_bytes"), moments="a straight line through b = 1 and 2"
    ),
    "a negative number": _wrong(
        _LINE.format(budget="(1 - free) * gpu_bytes").replace("max(0, ", "("),
        limits="a negative number",
        moments="a straight line through b = 1 and 2",
    ),
    "not rounded": _wrong(
        "\n    each = peak(2) - peak(1)\n    return ((1 - free) * gpu_bytes - peak(1)) / each + 1\n",
        all_="not rounded to a whole number",
        limits="-",
        moments="-",
    ),
    "the peak": _wrong(
        "\n    b = 1\n    while peak(b + 1) <= (1 - free) * gpu_bytes:\n        b += 1\n    return peak(b)\n",
        all_="the peak is returned instead of b",
        limits="-",
        moments="-",
    ),
    "nothing where nothing fits": _wrong(
        "\n    for b in range(1, 99999):\n        if peak(b) > (1 - free) * gpu_bytes:\n            return b - 1 or None\n",
        limits="returned None",
    ),
}
