"""What the experiment's numbers say, in sentences: your guess, a difference, an out-of-memory error."""

from typing import Any

from trainmem.measure.progress import Run
from trainmem.measure.quantities import part, size
from trainmem.measure.results import Results

#: Above this a difference between prediction and measurement wants a reason.
TELLING = {"cpu": 0.02, "cuda": 0.03}


def your_guess(guess: float | None, predicted: float, measured: float | None, unit: str = "") -> str:
    """Your number beside the simulator's and what came out.

    >>> print(your_guess(6, 8, 8.1, " GB"))
    You said 6 GB, the simulator 8 GB; measured 8.1 GB. Yours is 26% below.
    """
    came = "it did not fit" if measured is None else f"measured {_number(measured)}{unit}"
    if guess is None:
        return f"No guess written. The simulator said {_number(predicted)}{unit}; {came}."
    line = f"You said {_number(guess)}{unit}, the simulator {_number(predicted)}{unit}; {came}."
    if not measured:
        return line
    off = guess / measured - 1
    if abs(off) <= 0.05:
        return line + " That is as close as one gets by hand."
    return line + f" Yours is {abs(off):.0%} {'above' if off > 0 else 'below'}."


def your_choice(guess: Any, right: Any, what: str) -> str:
    """Your choice beside the right one.

    >>> print(your_choice(4, 1, "the best k"))
    You said 4; the best k is 1.
    """
    if guess is None:
        return f"No guess written: {what} is {right}."
    return f"You said {guess}, and so it is." if guess == right else f"You said {guess}; {what} is {right}."


def differences(run: Run) -> str:
    """How well all that is measured so far was predicted, and what to make of the rest."""
    records = list(run.results.measured())
    if not records:
        return "Nothing is measured yet."
    ratios = [x["measured_bytes"] / x["predicted_bytes"] - 1 for x in records]
    worst = max(records, key=lambda x: abs(x["measured_bytes"] / x["predicted_bytes"] - 1))
    off = worst["measured_bytes"] / worst["predicted_bytes"] - 1
    lines = [
        f"{len(records)} cases measured; the measurement is between {part(min(ratios), 2)} and {part(max(ratios), 2)} "
        f"of the prediction. Largest difference: s = {worst['s']:,}, {worst['setting']}, {part(off, 2)}."
    ]
    bound = TELLING[run.device.kind]
    if abs(off) <= bound:
        lines.append(f"That is within {bound:.0%}: the list of tensors accounts for what the device held.")
    else:
        lines.append(_reason(worst, off))
    return "\n".join(lines)


def _reason(record: dict[str, Any], off: float) -> str:
    """What a difference above the bound may come from, told by what the allocator says beside."""
    requested = record.get("details", {}).get("requested_bytes")
    if off > 0 and requested and requested / record["predicted_bytes"] - 1 <= TELLING["cuda"]:
        return (
            f"The program asked for {size(requested)} only. The rest is the allocator's: it rounds every block up, "
            "and leaves a block whole where what remains would be too small to use."
        )
    if off > 0:
        return (
            "More was asked for than the list has. Look for a kernel that takes scratch memory (fused attention's "
            "backward pass, cuBLAS on the newest cards), or a tensor that a name in the program still holds."
        )
    return (
        "Less was held than the list has: this PyTorch frees something earlier, or fuses operations that the list has "
        "one by one. The moment of the peak (measured_at in the results file) tells where to look."
    )


def out_of_memory(run: Run) -> str:
    """The cases that ran out of memory, each against what was predicted, and the surprises among those that did not."""
    lines = []
    for x in run.results.cases:
        case = f"s = {x['s']:,}, {x['setting']}"
        if x["outcome"] == "out of memory":
            where = f" in the {x['stopped_at']}" if x["stopped_at"] else " before the step began"
            said = {
                "does not fit": f"as predicted (it needs {size(x['predicted_bytes'])}; the card has "
                f"{size(run.device.limit_bytes)}; predicted to end in the {x['runs_out_at']})",
                "open": f"it was open: {size(x['predicted_bytes'])} of {size(run.device.limit_bytes)}, and free memory "
                "in pieces too small to use decides",
                "fits": f"against the prediction of {size(x['predicted_bytes'])}: something else uses the card "
                "(nvidia-smi lists it), or an earlier error still holds tensors (restart the kernel)",
            }[x["verdict"]]
            lines.append(f"- {case}: out of memory{where}, {said}.")
        elif x["verdict"] == "does not fit":
            lines.append(
                f"- {case}: was not to fit, and ran: {size(x['measured_bytes'])} of {size(x['predicted_bytes'])} "
                "predicted. The prediction is too high here."
            )
    return "\n".join(lines) or "Everything that was run fitted."


def best_interval(results: Results, s: int) -> int | None:
    """The k with the lowest measured peak at this length; None where no k was measured."""
    every = [x for x in results.measured() if x["s"] == s and x["setting"].startswith("every ")]
    return int(min(every, key=lambda x: x["measured_bytes"])["setting"].split()[1]) if every else None


def _number(value: float) -> str:
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
