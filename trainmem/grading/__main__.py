"""Grade a class: `python -m trainmem.grading SUBMITTED OUT`."""

import argparse
import os
import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Grade, and return the exit status: 0, 3 where a submission could not be graded, 1 where none could be."""
    parser = argparse.ArgumentParser(
        prog="python -m trainmem.grading",
        description="Grade SUBMITTED/<student>/training_memory/exercises.ipynb for every student. OUT then holds "
        "grades.csv, checks.csv, feedback/, autograded/ and gradebook.db.",
        epilog="Exit status: 0 all graded; 3 some could not be graded, and are listed; 1 nothing could be graded.",
    )
    parser.add_argument("submitted", type=Path, metavar="SUBMITTED")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--workers", type=int, help="how many at once (the number of this machine's cores)")
    parser.add_argument(
        "--sandbox",
        choices=("bubblewrap", "none"),
        help="what to run the students' code in, where it is not what nbgrader_config.py says; none is for a machine "
        "made for one submission only, or for submissions of your own",
    )
    chosen = parser.parse_args(arguments)
    # nbgrader starts its database tool by name: it must be found also where the environment is not activated.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    from trainmem.grading.batch import SandboxUnavailable, grade_class

    try:
        return grade_class(chosen.submitted, chosen.out, sandbox=chosen.sandbox, workers=chosen.workers)
    except (SandboxUnavailable, ValueError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted. Start it again: everything is graded anew, with the same result.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
