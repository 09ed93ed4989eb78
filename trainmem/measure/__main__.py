"""The checkpointing experiment from a terminal, every case of it, as the GPU notebook runs it.

python -m trainmem.measure --save notebooks/measured
"""

import argparse
import sys
from pathlib import Path

from trainmem.measure.checkpointing import cases, fitting
from trainmem.measure.device import this_device
from trainmem.measure.progress import Run, TerminalBar
from trainmem.measure.reading import differences, out_of_memory
from trainmem.measure.tables import peaks, times


def main(arguments: list[str] | None = None) -> int:
    """Runs it; 0 where every case was run, 130 after an interruption, 2 where the card is too small."""
    parser = argparse.ArgumentParser(prog="python -m trainmem.measure", description=__doc__.splitlines()[0])
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="keep the results as JSON in this folder")
    parser.add_argument("--limit-gb", type=float, metavar="GB", help="use no more of the card than this (GB = 10^9)")
    options = parser.parse_args(arguments)
    device = this_device(options.limit_gb and options.limit_gb * 1e9)
    print(device)
    try:
        shapes = fitting(device)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    print(shapes)
    run = Run(device, shapes, options.save)
    whole = run.measure(cases(shapes), TerminalBar)
    for part in (peaks(run, cases(shapes)), times(run, cases(shapes)), differences(run), out_of_memory(run)):
        print(part, end="\n\n")
    if run.results.path and run.results.cases:
        print(f"Saved in {run.results.path}")
    return 0 if whole else 130


if __name__ == "__main__":
    sys.exit(main())
