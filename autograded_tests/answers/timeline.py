"""Answers to exercise 4: memory_timeline and best_k."""

# ruff: noqa: E501 - the answers are lines as students write them

from . import Wrong, edited

PLAIN = {
    "memory_timeline": """
def memory_timeline(L, c, A, k=None):
    held = 0
    timeline = []
    if k is None:
        for layer in range(L):
            held += A
            timeline.append(held)
        for layer in range(L):
            held -= A
            timeline.append(held)
        return timeline
    if k < 1:
        raise ValueError("k must be at least 1")
    for layer in range(L):
        if layer % k == 0:
            held += c
        timeline.append(held)
    for start in reversed(range(0, L, k)):
        segment = range(start, min(start + k, L))
        for layer in segment:
            held += A
            timeline.append(held)
        for layer in reversed(segment):
            held -= A
            if layer == start:
                held -= c
            timeline.append(held)
    return timeline
""",
    "best_k": """
def best_k(L, c, A):
    best = 1
    for k in range(1, L + 1):
        if max(memory_timeline(L, c, A, k)) < max(memory_timeline(L, c, A, best)):
            best = k
    return best
""",
}

RIGHT = {
    "a generator": {
        "memory_timeline": """
def memory_timeline(L, c, A, k=None):
    if k is None:
        yield from (i * A for i in range(1, L + 1))
        yield from (i * A for i in range(L - 1, -1, -1))
        return
    if k < 1:
        raise ValueError("segments need at least one layer")
    for i in range(L):
        yield (i // k + 1) * c
    start = (L - 1) // k * k
    end = L
    while start >= 0:
        kept = (start // k + 1) * c
        for m in range(1, end - start + 1):
            yield kept + m * A
        for m in range(end - start - 1, 0, -1):
            yield kept + m * A
        yield kept - c
        start, end = start - k, start
""",
        "best_k": """
def best_k(L, c, A):
    return min(range(1, L + 1), key=lambda k: max(memory_timeline(L, c, A, k=k)))
""",
    },
    "deque": {
        "memory_timeline": """
from collections import deque

def memory_timeline(L, c, A, k=None):
    if k is not None and k < 1:
        raise ValueError(k)
    events = deque()
    if k is None:
        events.extend([A] * L + [-A] * L)
    else:
        segments = deque()
        for layer in range(L):
            if layer % k:
                segments[-1] += 1
            else:
                segments.append(1)
            events.append(0 if layer % k else c)
        while segments:
            m = segments.pop()
            events.extend([A] * m + [-A] * (m - 1) + [-A - c])
    held, result = 0, deque()
    while events:
        held += events.popleft()
        result.append(held)
    return result
""",
    },
    "cumulative sum in NumPy": {
        "memory_timeline": """
import numpy as np

def memory_timeline(L, c, A, k=None):
    if k is None:
        return np.cumsum([A] * L + [-A] * L)
    if k <= 0:
        raise ValueError("k <= 0")
    changes = np.zeros(L)
    changes[::k] = c
    parts = [changes]
    for start in range(0, L, k)[::-1]:
        m = min(k, L - start)
        up, down = np.full(m, A, dtype=float), np.full(m, -A, dtype=float)
        down[-1] -= c
        parts += [up, down]
    return np.concatenate(parts).cumsum()
""",
        "best_k": """
def best_k(L, c, A):
    peaks = np.array([np.max(memory_timeline(L, c, A, k)) for k in np.arange(1, L + 1)])
    return np.argmin(peaks) + 1
""",
    },
    "a range for the plain timeline": {
        "memory_timeline": '''
from itertools import accumulate, chain, repeat

def memory_timeline(L, c, A, k=None):
    """Tuples and itertools; without checkpoints a numpy-free chain of two ranges."""
    if k is None:
        return chain(map(A.__mul__, range(1, L + 1)), map(A.__mul__, range(L - 1, -1, -1)))
    if k < 1:
        raise ValueError("k")
    forward = (c if layer % k == 0 else 0 for layer in range(L))
    def back(start):
        m = min(L, start + k) - start
        return chain(repeat(A, m), repeat(-A, m - 1), (-A - c,))
    return tuple(accumulate(chain(forward, *map(back, range((L - 1) // k * k, -1, -k)))))
''',
    },
    "recursion": {
        "memory_timeline": """
def segments_back(L, c, A, k, start):
    if start < 0:
        return []
    kept = (start // k + 1) * c
    m = min(k, L - start)
    up = [kept + i * A for i in range(1, m + 1)]
    down = [kept + i * A for i in range(m - 1, 0, -1)] + [kept - c]
    return up + down + segments_back(L, c, A, k, start - k)

def memory_timeline(L, c, A, k=None):
    if k is None:
        return [] if L == 0 else [A] + [A + x for x in memory_timeline(L - 1, c, A)] + [0]
    if k < 1:
        raise ValueError("k must be positive")
    return [c * (1 + i // k) for i in range(L)] + segments_back(L, c, A, k, (L - 1) // k * k)
""",
        "best_k": """
def best_k(L, c, A, k=1, best=None):
    if k > L:
        return best[1]
    peak = max(memory_timeline(L, c, A, k))
    return best_k(L, c, A, k + 1, min(best or (peak, k), (peak, k)))
""",
    },
    "a class with __call__": {
        "memory_timeline": """
class Memory:
    def __init__(self):
        self.reset()

    def reset(self):
        self.held, self.history = 0, []

    def event(self, change):
        self.held += change
        self.history.append(self.held)

    def __call__(self, L, c, A, k=None):
        self.reset()
        if k is None:
            for change in [A] * L + [-A] * L:
                self.event(change)
            return self.history
        if k < 1:
            raise ValueError("k < 1")
        for layer in range(L):
            self.event(c if layer % k == 0 else 0)
        for layer in reversed(range(0, L, k)):
            last = min(layer + k, L) - 1
            for _ in range(layer, last + 1):
                self.event(A)
            for i in range(last, layer - 1, -1):
                self.event(-A if i > layer else -A - c)
        return self.history

memory_timeline = Memory()
""",
    },
    "fractions and decimals": {
        "memory_timeline": """
from decimal import Decimal
from fractions import Fraction

def memory_timeline(L, c, A, k=None):
    number = Decimal if k is None else Fraction
    c, A = number(c), number(A)
    if k is None:
        return [n * A for n in [*range(1, L + 1), *range(L - 1, -1, -1)]]
    if k < 1:
        raise ValueError
    out = [c * -(-i // k) for i in range(1, L + 1)]
    for j in range(-(-L // k), 0, -1):
        m = min(k, L - (j - 1) * k)
        out += [j * c + i * A for i in range(1, m + 1)]
        out += [j * c + i * A for i in range(m - 1, 0, -1)] + [(j - 1) * c]
    return out
""",
        "best_k": """
def best_k(L, c, A):
    def peak(k):
        full, short = divmod(L, k)
        ends = [full * c + k * A] if full else []
        return max(ends + ([(full + 1) * c + short * A] if short else []))
    return Decimal(min(range(1, L + 1), key=peak))
""",
    },
    "memoised, with a decorator": {
        "memory_timeline": """
from functools import lru_cache, wraps

def with_positive_k(function):
    @wraps(function)
    def checked(L, c, A, k=None):
        if k is not None and k < 1:
            raise ValueError(f"k = {k}")
        return function(L, c, A, k)
    return checked

@with_positive_k
@lru_cache(maxsize=None)
def memory_timeline(L, c, A, k=None):
    if k is None:
        up = [A * n for n in range(1, L + 1)]
        return tuple(up + up[-2::-1] + [0])
    up = [c * (n // k + 1) for n in range(L)]
    for start in range(0, L, k)[::-1]:
        rebuilt = list(range(start, L))[:k]
        kept = up[start]
        up += [kept + A * (i + 1) for i in range(len(rebuilt))]
        up += [kept + A * i for i in range(1, len(rebuilt))][::-1] + [kept - c]
    return tuple(up)
""",
        "best_k": """
@lru_cache(maxsize=None)
def best_k(L, c, A):
    peaks = {k: max(memory_timeline(L, c, A, k)) for k in range(L, 0, -1)}
    return min(peaks, key=peaks.get)
""",
    },
    "best_k without the timeline": {
        "best_k": """
def best_k(L, c, A):
    def peak(k):
        n = -(-L // k)
        last = L - (n - 1) * k
        peaks = [n * c + last * A]
        if n > 1:
            peaks.append((n - 1) * c + k * A)
        return max(peaks)
    return float(sorted(range(1, L + 1), key=peak)[0])
""",
    },
    "prints, warns and logs": {
        "memory_timeline": edited(
            PLAIN["memory_timeline"],
            (
                "    held = 0\n",
                "    import logging, sys, warnings\n"
                "    print('layers', L)\n"
                "    print('k is', k, file=sys.stderr)\n"
                "    warnings.warn('c and A must be in the same unit')\n"
                "    logging.info('start')\n"
                "    held = 0\n",
            ),
        ),
        "best_k": """
def best_k(L, c, A):
    peaks = []
    for k in range(1, L + 1):
        peaks.append((max(memory_timeline(L, c, A, k)), k))
    print("lowest peak", min(peaks))
    return min(peaks)[1]
""",
    },
    "extra parameters": {
        "memory_timeline": """
def memory_timeline(L: int, c: float, A: float, k: int = None, *, start=0, show=False) -> list:
    history = [start]
    def add(x):
        history.append(history[-1] + x)
    if k is None:
        [add(A) for _ in range(L)]
        [add(-A) for _ in range(L)]
    elif k >= 1:
        bounds = list(range(0, L, k)) + [L]
        for layer in range(L):
            add(c if layer in bounds else 0)
        for first, end in list(zip(bounds, bounds[1:]))[::-1]:
            for _ in range(first, end):
                add(A)
            for layer in range(end - 1, first - 1, -1):
                add(-A - c * (layer == first))
    else:
        raise ValueError("k must be 1, 2, ...")
    if show:
        print(history)
    return history[1:]
""",
        "best_k": """
def best_k(L, c, A, candidates=None, timeline=memory_timeline):
    candidates = candidates or range(1, L + 1)
    return sorted((max(timeline(A=A, c=c, L=L, k=k, show=False)), -k) for k in candidates)[0][1] * -1
""",
    },
    "an iterable class that is read lazily": {
        "memory_timeline": """
class Timeline:
    def __init__(self, L, c, A, k):
        self.L, self.c, self.A, self.k = L, c, A, k

    def __iter__(self):
        if self.k is None:
            yield from [i * self.A for i in list(range(1, self.L + 1)) + list(range(self.L))[::-1]]
            return
        if self.k < 1:
            raise ValueError("k must not be below 1")
        L, c, A, k = self.L, self.c, self.A, self.k
        number = 0
        for layer in range(L):
            number += layer % k == 0
            yield number * c
        sizes = [len(range(L)[i : i + k]) for i in range(0, L, k)]
        for number, m in reversed([*enumerate(sizes, start=1)]):
            yield from (number * c + i * A for i in range(1, m + 1))
            yield from (number * c + i * A - c * (i == 0) for i in range(m - 1, -1, -1))

memory_timeline = lambda L, c, A, k=None: Timeline(L, c, A, k)
""",
    },
    "really allocates": {
        "memory_timeline": '''
def memory_timeline(L, c, A, k=None):
    """Small sizes are held as bytes for real."""
    small = L <= 12 and isinstance(c, int) and isinstance(A, int) and max(c, A) < 5000
    make = bytes if small else float
    size = len if small else float
    activations, checkpoints, timeline = [], [], []

    def note():
        timeline.append(sum(map(size, activations)) + sum(map(size, checkpoints)))

    if k is None:
        for _ in range(L):
            activations.append(make(A))
            note()
        for _ in range(L):
            activations.pop()
            note()
        return timeline
    if k < 1:
        raise ValueError("k")
    for layer in range(L):
        if layer % k == 0:
            checkpoints.append(make(c))
        note()
    while checkpoints:
        first = (len(checkpoints) - 1) * k
        for _ in range(first, min(first + k, L)):
            activations.append(make(A))
            note()
        while activations:
            activations.pop()
            if not activations:
                checkpoints.pop()
            note()
    return timeline
''',
    },
}

_TIMELINE, _BEST = PLAIN["memory_timeline"], PLAIN["best_k"]
_PLAIN_CHECK, _CHECKPOINTS, _LIMITS, _BEST_K = (
    "check_memory_timeline_plain",
    "check_memory_timeline_checkpoints",
    "check_memory_timeline_limits",
    "check_best_k",
)


def _timeline(*changes: tuple[str, str], **fails: str | None) -> Wrong:
    names = {"plain": _PLAIN_CHECK, "checkpoints": _CHECKPOINTS, "limits": _LIMITS}
    return Wrong({"memory_timeline": edited(_TIMELINE, *changes)}, {names[part]: said for part, said in fails.items()})


def _best(body: str, said: str | None) -> Wrong:
    return Wrong({"best_k": f"import math\n\ndef best_k(L, c, A):\n    {body}\n"}, {_BEST_K: said})


_EACH_K = "{}(range(1, L + 1), key=lambda k: {})"

WRONG = {
    "activations never freed": _timeline(
        ("range(L):\n            held -= A", "range(L):\n            held -= 0"),
        plain="the activations of a layer are not freed by its backward event",
    ),
    "two layers freed at once": _timeline(
        ("range(L):\n            held -= A", "range(L):\n            held -= 2 * A"),
        plain="two layers' activations are freed by one backward event",
    ),
    "checkpoints also without checkpointing": _timeline(
        (
            "held += A\n            timeline.append(held)\n        for layer in range(L):",
            "held += A + c\n            timeline.append(held)\n        for layer in range(L):",
        ),
        plain="a forward event does not add exactly A",
    ),
    "read before the event": Wrong(
        {
            "memory_timeline": """
def memory_timeline(L, c, A, k=None):
    held, timeline = 0, []
    def event(change):
        nonlocal held
        timeline.append(held)
        held += change
    if k is None:
        for change in [A] * L + [-A] * L:
            event(change)
        return timeline
    if k < 1:
        raise ValueError("k must be at least 1")
    for layer in range(L):
        event(c if layer % k == 0 else 0)
    for start in reversed(range(0, L, k)):
        m = min(k, L - start)
        for change in [A] * m + [-A] * (m - 1) + [-A - c]:
            event(change)
    return timeline
"""
        },
        {
            _PLAIN_CHECK: "each value is read before its event instead of after it",
            _CHECKPOINTS: "each value is read before its event instead of after it",
            _LIMITS: "each value is read before its event instead of after it",
        },
    ),
    "begins with a zero": _timeline(
        ("timeline = []", "timeline = [0]"),
        plain="a value before the first event is in it",
        checkpoints="a value before the first event is in it",
        limits="a value before the first event is in it",
    ),
    "the last event left out": _timeline(
        ("return timeline", "return timeline[:-1]"),
        plain="events are missing (5 values for 6 events)",
        checkpoints="8 values",
        limits="5 values",
    ),
    "the changes, not what is held": Wrong(
        {
            "memory_timeline": """
def memory_timeline(L, c, A, k=None):
    if k is None:
        return [A] * L + [-A] * L
    if k < 1:
        raise ValueError("k")
    changes = [c if layer % k == 0 else 0 for layer in range(L)]
    for start in reversed(range(0, L, k)):
        m = min(k, L - start)
        changes += [A] * m + [-A] * (m - 1) + [-A - c]
    return changes
"""
        },
        dict.fromkeys((_PLAIN_CHECK, _CHECKPOINTS, _LIMITS), "each value is the event's change, not what is held"),
    ),
    "only the peak": _timeline(
        ("return timeline", "return max(timeline)"),
        plain="a single int: return the whole sequence of numbers",
        checkpoints="return the whole sequence",
        limits="return the whole sequence",
    ),
    "text in the list": _timeline(
        ("return timeline", 'return [f"{held} bytes" for held in timeline]'),
        plain="a sequence whose item 0 is text",
        checkpoints="a sequence whose item 0 is text",
        limits="a sequence whose item 0 is text",
    ),
    "nothing returned": _timeline(
        ("return timeline", "print(timeline); return"), plain="None: does every path", checkpoints="None", limits="None"
    ),
    "an empty list": _timeline(
        ("return timeline", "return []"),
        plain="events are missing (0 values for 6",
        checkpoints="0 values",
        limits="0 values",
    ),
    "the rebuild forgotten": _timeline(
        ("        for layer in segment:\n            held += A\n            timeline.append(held)\n", ""),
        ("            held -= A\n            if layer", "            if layer"),
        checkpoints="the rebuild events are missing",
        limits=None,
    ),
    "the forward pass keeps everything": _timeline(
        ("if layer % k == 0:\n            held += c", "held += A"),
        checkpoints="keeps the layers' activations",
        limits=None,
    ),
    "checkpoint and activations in the forward pass": _timeline(
        ("if layer % k == 0:\n            held += c", "held += A\n        if layer % k == 0:\n            held += c"),
        checkpoints="keeps the layers' activations",
        limits=None,
    ),
    "a checkpoint in every layer": _timeline(
        ("if layer % k == 0:\n            held += c", "held += c"),
        checkpoints="every layer keeps a checkpoint, not only the first of each segment",
        limits=None,
    ),
    "no checkpoint for the first segment": _timeline(
        ("if layer % k == 0:\n            held += c", "if layer % k == 0 and layer > 0:\n            held += c"),
        ("if layer == start:", "if layer == start and layer > 0:"),
        checkpoints="the first segment has no checkpoint",
        limits=None,
    ),
    "k segments instead of k layers": _timeline(
        (
            "    for layer in range(L):\n        if layer % k",
            "    k = -(-L // k)\n    for layer in range(L):\n        if layer % k",
        ),
        checkpoints="are k and the number of segments swapped?",
        limits=None,
    ),
    "the checkpoint kept at the end of a segment": _timeline(
        ("if layer % k == 0:", "if layer % k == k - 1 or layer == L - 1:"),
        checkpoints=None,
        limits=None,
    ),
    "the checkpoint freed by the rebuild": _timeline(
        (
            "for layer in segment:\n            held += A",
            "held -= c\n        for layer in segment:\n            held += A",
        ),
        ("            if layer == start:\n                held -= c\n", ""),
        checkpoints="the checkpoint is freed when its segment is rebuilt",
        limits=None,
    ),
    "the checkpoint counted as the first rebuilt layer": _timeline(
        (
            "for layer in segment:\n            held += A",
            "for layer in segment:\n            held += A - c * (layer == start)",
        ),
        ("            if layer == start:\n                held -= c\n", ""),
        checkpoints="the checkpoint is freed when its segment is rebuilt",
        limits=None,
    ),
    "the segment rebuilt in one go": _timeline(
        (
            "for layer in segment:\n            held += A",
            "for layer in segment:\n            held += A * len(segment) * (layer == start)",
        ),
        checkpoints="more than one layer is rebuilt by one event",
        limits=None,
    ),
    "the first rebuild adds nothing": _timeline(
        (
            "for layer in segment:\n            held += A",
            "for layer in segment:\n            held += A * (layer > start)",
        ),
        ("held -= A\n            if", "held -= A * (layer > start)\n            if"),
        checkpoints="a segment is rebuilt in part, or not the last segment first",
        limits=None,
    ),
    "checkpoints never freed": _timeline(
        ("            if layer == start:\n                held -= c\n", ""),
        checkpoints="the checkpoint was not freed",
        limits=None,
    ),
    "checkpoints freed all together at the end": _timeline(
        ("if layer == start:\n                held -= c", "if layer == 0:\n                held = 0"),
        checkpoints="the checkpoint was not freed",
    ),
    "the checkpoint freed by the first backward event": _timeline(
        ("if layer == start:", "if layer == segment[-1]:"),
        checkpoints="the checkpoint is freed too early",
        limits=None,
    ),
    "the first segment taken first": _timeline(
        ("for start in reversed(range(0, L, k)):", "for start in range(0, L, k):"),
        checkpoints="the segments are not taken from the last to the first",
    ),
    "the whole segment freed at once": _timeline(
        (
            "held -= A\n            if layer == start:",
            "held -= A * len(segment) * (layer == segment[-1])\n            if layer == start:",
        ),
        checkpoints="a backward event does not free exactly one layer's A",
        limits=None,
    ),
    "every segment as long as k": _timeline(
        ("min(start + k, L)", "start + k"), checkpoints="there are too many events", limits="there are too many"
    ),
    "the short segment first": _timeline(
        (
            "    for layer in range(L):\n        if layer % k",
            "    k, short = min(k, L), L % min(k, L)\n    for layer in range(L):\n        if layer % k",
        ),
        ("if layer % k == 0:", "if (layer - short) % k == 0 or layer == 0:"),
        ("reversed(range(0, L, k))", "[*range(short, L, k)][::-1] + [0] * (short > 0)"),
        ("min(start + k, L)", "start + k if start or not short else short"),
        checkpoints=None,
    ),
    "no checkpoints when k is above L": _timeline(
        ("if k is None:", "if k is None or k > L:"), limits="nothing is checkpointed when k is above L"
    ),
    "k above L refused": _timeline(("if k < 1:", "if k < 1 or k > L:"), limits="raised ValueError"),
    "k = 0 taken for no checkpoints": _timeline(("if k is None:", "if not k:"), limits="raise a ValueError there"),
    "a negative k taken as it comes": _timeline(("if k < 1:", "if k == 0:"), limits="raise a ValueError there"),
    "a bad k gives an empty list": _timeline(
        ('raise ValueError("k must be at least 1")', "return []"), limits="returned a value"
    ),
    "a bad k fails an assertion": _timeline(
        ('if k < 1:\n        raise ValueError("k must be at least 1")', "assert k >= 1"), limits="raised AssertionError"
    ),
    "a list that grows from call to call": _timeline(
        ("def memory_timeline(L, c, A, k=None):", "def memory_timeline(L, c, A, k=None, timeline=[]):"),
        ("    timeline = []\n", ""),
        plain="there are too many events (more than 2 values",
        checkpoints="there are too many events",
        limits=None,
    ),
    "a memoised generator": Wrong(
        {
            "memory_timeline": """
from functools import lru_cache

@lru_cache
def memory_timeline(L, c, A, k=None):
    if k is None:
        return (n * A for n in [*range(1, L + 1), *range(L - 1, -1, -1)])
    if k < 1:
        raise ValueError("k")
    held = [c * (n // k + 1) for n in range(L)]
    for start in range(0, L, k)[::-1]:
        m = min(k, L - start)
        held += [held[start] + A * i for i in range(1, m + 1)]
        held += [held[start] + A * i for i in range(m - 1, 0, -1)] + [held[start] - c]
    return iter(held)
"""
        },
        dict.fromkeys((_PLAIN_CHECK, _CHECKPOINTS, _LIMITS), "events are missing"),
    ),
    "the published values by heart": Wrong(
        {
            "memory_timeline": """
def memory_timeline(L, c, A, k=None):
    if k is not None and k < 1:
        raise ValueError
    return {
        (3, None): [34, 68, 102, 68, 34, 0],
        (1, None): [7, 0],
        (4, None): [1000, 2000, 3000, 4000, 3000, 2000, 1000, 0],
        (3, 2): [2, 2, 4, 14, 2, 12, 22, 12, 0],
        (7, 3): [2, 2, 2, 4, 4, 4, 6, 16, 4, 14, 24, 34, 24, 14, 2, 12, 22, 32, 22, 12, 0],
        (2, 1): [2, 4, 38, 2, 36, 0],
        (2, 5): [2, 2, 36, 70, 36, 0],
    }.get((L, k), [0] * 3 * L)
""",
            "best_k": "def best_k(L, c, A):\n    return {24: 1, 80: 2, 34: 2}.get(L, 1)\n",
        },
        {_PLAIN_CHECK: None, _CHECKPOINTS: None, _LIMITS: None, _BEST_K: None},
    ),
    "the peak instead of k": _best(
        "return min(max(memory_timeline(L, c, A, k)) for k in range(1, L + 1))", "the peak is returned instead of k"
    ),
    "the number of segments instead of k": _best(
        f"return math.ceil(L / {_EACH_K.format('min', 'max(memory_timeline(L, c, A, k))')})",
        "k and the number of segments are swapped",
    ),
    "the square root as it is": _best("return math.sqrt(L * c / A)", "the square root is returned as it is"),
    "the square root of L": _best("return round(math.sqrt(L))", "the square root of L is taken"),
    "the square root of L, rounded down": _best("return math.isqrt(L)", "the square root of L, rounded down, is taken"),
    "the square root rounded": _best("return min(L, max(1, round(math.sqrt(L * c / A))))", "not the timeline"),
    "the square root rounded up": _best(
        "return min(L, math.ceil(math.sqrt(L * c / A)))", "the square root is rounded up"
    ),
    "the square root rounded down": _best("return min(L, max(1, int(math.sqrt(L * c / A))))", "not the timeline"),
    "the formula M(k)": _best(f"return {_EACH_K.format('min', 'L / k * c + k * A')}", "not the timeline"),
    "the formula M(k), last of equal": _best(
        "return min(range(L, 0, -1), key=lambda k: L / k * c + k * A)", "not the timeline"
    ),
    "the last segment as long as the others": _best(
        f"return {_EACH_K.format('min', 'math.ceil(L / k) * c + k * A')}", "the last segment is taken to be as long"
    ),
    "segments rounded down": _best(
        f"return {_EACH_K.format('min', 'L // k * c + k * A')}", "the last segment is left out"
    ),
    "always 1": _best("return 1", "k is always 1, or the checkpoints are left out of the peak"),
    "the checkpoints left out of the peak": _best(
        f"return {_EACH_K.format('min', 'k * A')}", "or the checkpoints are left out of the peak"
    ),
    "always L": _best("return L", "or k is always L"),
    "the highest peak": _best(f"return {_EACH_K.format('max', 'max(memory_timeline(L, c, A, k))')}", None),
    "counted from 0": _best(
        "peaks = [max(memory_timeline(L, c, A, k)) for k in range(1, L + 1)]\n    return peaks.index(min(peaks))",
        "k is counted from 0",
    ),
    "only divisors of L tried": _best(
        "return min((k for k in range(1, L + 1) if L % k == 0), key=lambda k: max(memory_timeline(L, c, A, k)))",
        "only divisors of L are tried",
    ),
    "L left out of the search": _best(
        "return min(range(1, max(2, L)), key=lambda k: max(memory_timeline(L, c, A, k)))", "k = L is not tried"
    ),
    "the mean instead of the peak": _best(
        f"return {_EACH_K.format('min', 'sum(memory_timeline(L, c, A, k)) / (3 * L)')}", None
    ),
    "c and A swapped": _best(f"return {_EACH_K.format('min', 'max(memory_timeline(L, A, c, k))')}", None),
    "k and the peak together": _best(
        f"k = {_EACH_K.format('min', 'max(memory_timeline(L, c, A, k))')}\n    return k, max(memory_timeline(L, c, A, k))",
        "a tuple of 2: return one number",
    ),
}
