"""Grade the same submissions with stock nbgrader and with the batch command, in turns: `python benchmarks/grading.py`.

Prints the ratio of the times, milliseconds a submission, where they go, peak memory, and 500 against 1,000 submissions
with the batch command alone. Both graders start from a course folder without a gradebook's submissions and end with the
same marks; what is timed is the whole command, start and end included.
"""

import argparse
import csv
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = Path("training_memory", "exercises.ipynb")


def answered(number: int) -> bytes:
    """An honest submission, unlike all others by a remark: every third leaves the last answer out."""
    source = json.loads((ROOT / "source" / NOTEBOOK).read_text("utf-8"))
    release = json.loads((ROOT / "release" / NOTEBOOK).read_text("utf-8"))
    for right, cell in zip(source["cells"], release["cells"], strict=True):
        if right["metadata"]["nbgrader"]["solution"] and not (number % 3 == 2 and cell["id"] == "cheapest_fix"):
            lines = "".join(right["source"]).split("\n")
            cell["source"] = "\n".join(line for line in lines if not line.strip().startswith("### "))
            cell["source"] += f"\n# submission {number}"
    return json.dumps(release).encode()


def hand_in(folder: Path, count: int) -> Path:
    for number in range(count):
        place = folder / f"student-{number:04}" / NOTEBOOK
        place.parent.mkdir(parents=True)
        place.write_bytes(answered(number))
    return folder


def environment(**more: str) -> dict[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return os.environ | {"PYTHONPATH": str(ROOT), "PATH": path} | more


STOCK = environment(TRAINMEM_GRADING="nbgrader")


def run(command: list[str], **options) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", *command], check=True, capture_output=True, **options)
    return time.perf_counter() - began


def stock_course(folder: Path) -> Path:
    """A course folder in which the assignment is known: that is not timed."""
    for name in ("source", "release"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    run(
        ["nbgrader", "generate_assignment", "training_memory"], cwd=folder, env=environment(TRAINMEM_GRADING="nbgrader")
    )
    return folder


def stock(course: Path, submitted: Path) -> float:
    """Seconds for nbgrader autograde and generate_feedback on what has been submitted."""
    shutil.copytree(submitted, course / "submitted")
    options = {"cwd": course, "env": environment(TRAINMEM_GRADING="nbgrader")}
    return sum(
        run(["nbgrader", command, "training_memory"], **options) for command in ("autograde", "generate_feedback")
    )


def batch(submitted: Path, out: Path) -> float:
    return run(["trainmem.grading", str(submitted), str(out)], env=environment())


def marks(path: Path) -> dict[str, str]:
    with open(path, newline="", encoding="utf-8") as file:
        return {row["student_id"]: row["score"] for row in csv.DictReader(file)}


def compare(folder: Path, count: int, rounds: int) -> None:
    """Both in turns, each on all the submissions, from an empty gradebook every time."""
    submitted = hand_in(folder / "submitted", count)
    seconds: dict[str, list[float]] = {"stock": [], "batch": []}
    for turn in range(rounds):
        place = folder / f"round-{turn}"
        course = stock_course(place / "course")
        for name in ["stock", "batch"] if turn % 2 == 0 else ["batch", "stock"]:
            seconds[name].append(stock(course, submitted) if name == "stock" else batch(submitted, place / "out"))
        run(["nbgrader", "export"], cwd=course, env=STOCK)
        if marks(course / "grades.csv") != marks(place / "out" / "grades.csv"):
            raise SystemExit("the marks differ")
        ratio = seconds["stock"][-1] / seconds["batch"][-1]
        print(f"  round {turn + 1}: {seconds['stock'][-1]:.1f} s and {seconds['batch'][-1]:.1f} s, ratio {ratio:.1f}")
    cores = len(os.sched_getaffinity(0))
    print(f"{count} submissions in {rounds} rounds, equal marks, {cores} cores, load {os.getloadavg()[0]:.1f}")
    for name, each in seconds.items():
        print(f"  {name}  {sum(each):7.1f} s  {1e3 * sum(each) / count / rounds:7.0f} ms a submission")
    print(f"  ratio  {sum(seconds['stock']) / sum(seconds['batch']):.1f}")


class Watch:
    """The peak memory of a process and its children, in bytes, looked at ten times a second."""

    def __init__(self, pid: int) -> None:
        self.pid, self.peak_bytes, self.own_peak_bytes = pid, 0, 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._end.wait(0.1):
            sizes = tree_bytes(self.pid)
            self.peak_bytes = max(self.peak_bytes, sum(sizes.values()))
            self.own_peak_bytes = max(self.own_peak_bytes, sizes.get(self.pid, 0))


def tree_bytes(root: int) -> dict[int, int]:
    """The proportional memory of a process and of all that descend from it, by process id."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(path.parent.name)] = int(fields[1])
    wanted, sizes = {root}, {}
    while True:
        more = {pid for pid, parent in parents.items() if parent in wanted} - wanted
        if not more:
            break
        wanted |= more
    for pid in wanted:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().split("\n")
        except OSError:
            continue
        sizes[pid] = sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return sizes


def grow(folder: Path, sizes: list[int]) -> None:
    """The batch command alone on ever more submissions: the time must grow as they do, the memory must not."""
    print("the batch command alone")
    for count in sizes:
        submitted = hand_in(folder / f"submitted-{count}", count)
        out = folder / f"out-{count}"
        began = time.perf_counter()
        command = [sys.executable, "-m", "trainmem.grading", str(submitted), str(out)]
        process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        watch = Watch(process.pid)
        status = process.wait()
        seconds = time.perf_counter() - began
        watch.stop()
        if status:
            raise SystemExit(f"exit status {status}")
        print(
            f"  {count:5} submissions  {seconds:6.1f} s  {1e3 * seconds / count:5.0f} ms each  "
            f"peak memory {watch.peak_bytes / 1e6:.0f} MB, of it the process that records "
            f"{watch.own_peak_bytes / 1e6:.0f} MB"
        )
        shutil.rmtree(submitted)


def stages(folder: Path, count: int) -> None:
    """Milliseconds of each stage, one after the other in this process."""
    sys.path.insert(0, str(ROOT))
    from trainmem.course.editions import course_config
    from trainmem.course.place import ASSIGNMENT
    from trainmem.grading.checks import Grader
    from trainmem.grading.edition import course_stub, read_edition
    from trainmem.grading.outcome import Job
    from trainmem.grading.publish import page_of, submitted_at, write_autograded, write_whole
    from trainmem.grading.record import Record, gradebook_url
    from trainmem.grading.salt import private_salt
    from trainmem.grading.salvage import salvage
    from trainmem.grading.worker import grade, right_functions

    config = course_config()
    edition = read_edition(ROOT / "source" / NOTEBOOK, course_stub(config))
    submitted = hand_in(folder / "stages", count)
    database = folder / "gradebook.db"
    folder.mkdir(parents=True, exist_ok=True)
    spent = dict.fromkeys(("salvage", "run and check", "record", "write"), 0.0)
    functions = right_functions(edition)
    with (
        Grader(edition.assignment, functions, private_salt(database)) as grader,
        Record(gradebook_url(database), edition, ASSIGNMENT, "exercises", "trainmem", config) as record,
    ):
        for place in sorted(submitted.iterdir()):
            clock = [time.perf_counter()]
            salvage(place / ASSIGNMENT, edition)
            clock.append(time.perf_counter())
            graded = grade(Job(place.name, place / ASSIGNMENT), edition, grader)
            clock.append(time.perf_counter())
            scores = {result.check: result.score for result in graded.results}
            standing = record.put(place.name, scores, graded.unwritten, submitted_at(place / ASSIGNMENT))
            clock.append(time.perf_counter())
            write_autograded(folder / "autograded" / place.name, "exercises", graded, place / ASSIGNMENT)
            write_whole(folder / "feedback" / place.name / "exercises.html", page_of(graded, edition, standing))
            clock.append(time.perf_counter())
            for name, start, end in zip(spent, clock, clock[1:], strict=False):
                spent[name] += end - start
    spent["run and check"] -= spent["salvage"]  # grading salvages once more
    print(f"where the time of a submission goes, {count} of them one by one")
    for name, seconds in spent.items():
        print(f"  {name:14} {1e3 * seconds / count:6.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--submissions", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=2, help="each grades all of them so many times")
    parser.add_argument("--sizes", type=int, nargs="*", default=[500, 1000])
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        compare(Path(folder, "compare"), chosen.submissions, chosen.rounds)
        stages(Path(folder, "one-by-one"), 40)
        grow(Path(folder, "grow"), chosen.sizes)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(f"the largest single process had {peak / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
