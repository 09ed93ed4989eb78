"""Build the notebooks that are generated: `python -m trainmem.course.build`; with `--check`, only compare.

The notebooks that are written by hand stay as they are, but for the addresses in them, which `place` gives.
Exit status 1 with the names of the files that are not what would be built.
"""

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

from trainmem.course.editions import ROOT, instructor_edition, self_study_edition, student_edition
from trainmem.course.lesson import lesson_edition
from trainmem.course.place import ASSIGNMENT, NOTEBOOK, WRITTEN, readdressed
from trainmem.figures.static import static_pictures


def built(run: bool = True) -> dict[Path, str]:
    """Return the text of every generated file by its path, and of the written notebooks with their addresses in place.

    The lesson carries outputs: it is executed where `run` is true, else the committed outputs are taken over (that they
    are right is what nbval tests). Without PyTorch they are taken over too, since some are its measurements.
    """
    if run and find_spec("torch") is None:
        print("without torch the lesson is not run again: its committed outputs stay", file=sys.stderr)
        run = False
    lesson = ROOT / "notebooks" / "lesson.ipynb"
    source = instructor_edition()
    return {
        ROOT / "source" / ASSIGNMENT / f"{NOTEBOOK}.ipynb": source,
        ROOT / "release" / ASSIGNMENT / f"{NOTEBOOK}.ipynb": student_edition(source),
        ROOT / "notebooks" / "self_study.ipynb": self_study_edition(),
        lesson: lesson_edition(lesson, run),
        **{ROOT / name: readdressed((ROOT / name).read_text("utf-8"), name) for name in WRITTEN},
        **{ROOT / "notebooks" / "figures" / name: text for name, text in static_pictures().items()},
    }


def main(arguments: list[str] | None = None) -> int:
    """Write the generated files, or compare them; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m trainmem.course.build", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a file differs")
    check = parser.parse_args(arguments).check
    files = built(run=not check)
    different = [path for path, text in files.items() if not path.exists() or path.read_bytes() != text.encode()]
    for path in different:
        name = path.relative_to(ROOT)
        if check:
            why = "has other addresses than place.py" if str(name) in WRITTEN else "is not what its source gives"
            print(f"{name} {why}: edit that (CONTRIBUTING.md says where) and run `make build`", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[path], "utf-8")
            print(f"wrote {name}")
    return 1 if check and different else 0


if __name__ == "__main__":
    sys.exit(main())
