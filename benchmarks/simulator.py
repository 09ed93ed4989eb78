"""What a sweep over checkpointing intervals costs: 200 layers, 200 values of k, against an event list for each k.

Run from the repository: python benchmarks/simulator.py
"""

import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "autograded_tests" / "memory")]

from interval_oracle import step_totals  # noqa: E402

from trainmem.memory import Step, embedding, gpt_layer, head  # noqa: E402

L, INTERVALS = 200, range(1, 201)
SAMPLE = (1, 2, 14, 77, 200)  # the event lists are slow: a few intervals show their time for one


def blocks():
    s, b, h = 2048, 1, 2048
    return gpt_layer(s, b, h, 16, attention="fused"), head(s, b, h, 50257), embedding(s, b, h, 50257)


def sweep():
    """The simulator, from a layer's operations to 200 peaks."""
    layer, top, bottom = blocks()
    return Step(layer, L, head=top, embedding=bottom).peaks(INTERVALS)


def event_lists():
    """The peaks from the birth and death of every tensor of all 200 layers."""
    layer, top, bottom = blocks()
    return {every: max(row[-1] for row in step_totals(layer, L, top, bottom, every)) for every in SAMPLE}


def best_of(function, times):
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        answer = function()
        seconds.append(time.perf_counter() - start)
    return min(seconds), answer


if __name__ == "__main__":
    fast, peaks = best_of(sweep, 5)
    slow, expected = best_of(event_lists, 1)
    if any(peaks[every - 1] != peak for every, peak in expected.items()):
        raise SystemExit("the sweep and the event lists disagree")
    each, each_list = fast / len(INTERVALS), slow / len(SAMPLE)
    print(f"{L} layers, {len(INTERVALS)} intervals: {fast * 1e3:.1f} ms in all (promised: under 100)")
    print(f"an event list takes {each_list / each:.0f} times as long for one interval; the peaks are the same")
    print(f"lowest peak at k = {min(INTERVALS, key=lambda k: peaks[k - 1])}")
