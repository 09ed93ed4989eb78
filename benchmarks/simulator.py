"""What a sweep over checkpointing intervals costs: 200 layers, 200 values of k, against an event list for each k.

Run from the repository: python benchmarks/simulator.py
"""

import time

from trainmem.memory import Step, gpt_layer

L, INTERVALS = 200, range(1, 201)


def sweep():
    """The simulator, from the layer's operations to 200 peaks."""
    return Step(gpt_layer(2048, 1, 2048, 16, attention="fused"), L).peaks(INTERVALS)


def brute_force():
    """The same peaks from every event of every step, one operation at a time, added up in plain Python."""
    step = Step(gpt_layer(2048, 1, 2048, 16, attention="fused"), L)
    start = sum(step.initial.values())
    peaks = []
    for every in INTERVALS:
        held = peak = start
        for piece, _, _, times in step._layout(every):
            rows = list(zip(piece.during.sum(axis=1).tolist(), piece.after.sum(axis=1).tolist(), strict=True))
            for _ in range(times):
                for high, end in rows:
                    peak = max(peak, held + high)
                    held += end
        peaks.append(peak)
    return peaks


def best_of(function, times):
    results = []
    for _ in range(times):
        start = time.perf_counter()
        answer = function()
        results.append(time.perf_counter() - start)
    return min(results), answer


if __name__ == "__main__":
    fast, peaks = best_of(sweep, 5)
    slow, expected = best_of(brute_force, 1)
    if peaks != expected:
        raise SystemExit("the sweep and the event lists disagree")
    best = min(INTERVALS, key=lambda k: peaks[k - 1])
    print(f"{L} layers, {len(INTERVALS)} intervals: {fast * 1e3:.1f} ms ({'under' if fast < 0.1 else 'OVER'} 100 ms)")
    print(f"event lists: {slow * 1e3:.0f} ms, {slow / fast:.0f} times as long; same peaks, best k = {best}")
