"""The student's answers, put into a clean copy of the course's own notebook, whatever state their file is in.

What is taken from a file is the text of its cells, nothing else. A cell is the answer to an exercise where it defines
the function that is asked for; a label (grade_id, cell id) or, failing that, its position says where it stands. Of two
that define it the last one counts. A definition that only raises NotImplementedError, as a stub does, is none. Within a
later exercise a cell may use the name again for something else: there it counts only if it bears the label, or where
the exercise's own cells have none, or after the last of the course's cells.
"""

import builtins
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trainmem.grading.definitions import Contents, contents
from trainmem.grading.edition import Edition, Place, plain
from trainmem.grading.finding import Candidate, candidates
from trainmem.grading.reading import RawCell, RawNotebook, Refused, read_notebook
from trainmem.grading.trial import StudentCell

_NAMES_SHOWN = 6
_NEVER_PULLED = frozenset(vars(builtins)) | {"get_ipython", "display", "__name__"}


@dataclass(frozen=True)
class CopiedCell:
    """A cell of the clean copy: the course's own, given or answered, or one that the student has added."""

    kind: str
    source: str
    place: Place | None


@dataclass(frozen=True)
class Salvaged:
    """A submission as it is graded.

    code: what is run, in order. copy: the clean notebook. repairs, cut: sentences for the student. written: the
    functions for which there is an answer. called: how each cell of `code` can be named to its author.
    """

    code: tuple[StudentCell, ...]
    copy: tuple[CopiedCell, ...]
    repairs: tuple[str, ...]
    cut: tuple[str, ...]
    written: frozenset[str]
    called: tuple[str, ...]


def salvage(place: Path, edition: Edition) -> Salvaged:
    """Return what the file, archive or folder at `place` hands in. Raises Refused with the reason why not."""
    notes: list[str] = []
    found = candidates(place, notes)
    readable: list[tuple[Candidate, Salvaged]] = []
    refusals: list[tuple[Candidate, str]] = []
    for candidate in found:
        try:
            raw = read_notebook(candidate.data, candidate.file)
            readable.append((candidate, salvage_cells(raw, candidate.file, edition)))
        except Refused as refused:
            refusals.append((candidate, str(refused)))
    if not readable:
        raise Refused("; ".join(reason for _, reason in refusals[:3]))
    chosen, salvaged = _meant(readable)
    if chosen.file != "exercises.ipynb":
        notes.insert(0, f"The notebook was handed in as “{chosen.file}”.")
    aside = [other.file for other, _ in readable if other is not chosen]
    if aside:
        notes.append(f"Other notebooks that were handed in with it were left aside: {_listed(aside)}.")
    notes += [f"Another file that was handed in was left aside: {reason}." for _, reason in refusals[:3]]
    return replace(salvaged, repairs=(*notes, *salvaged.repairs))


def _meant(readable: Sequence[tuple[Candidate, Salvaged]]) -> tuple[Candidate, Salvaged]:
    """Return the one notebook that can be meant; raises Refused where several can."""

    def preference(pair: tuple[Candidate, Salvaged]) -> tuple[bool, int, str]:
        candidate = pair[0]
        return candidate.file.rpartition("/")[2] != "exercises.ipynb", candidate.depth, candidate.file

    answered = [pair for pair in readable if pair[1].written]
    rivals = sorted(answered or readable, key=preference)
    different = {tuple((cell.source, cell.answer) for cell in salvaged.code) for _, salvaged in rivals}
    if len(different) > 1:
        names = [candidate.file for candidate, _ in rivals]
        raise Refused(f"it holds {len(names)} notebooks, and each may be meant: {_listed(names, ' and ')}")
    return rivals[0]


def _listed(names: Iterable[str], last: str = ", ") -> str:
    quoted = [f"“{name}”" for name in names]
    if len(quoted) > _NAMES_SHOWN:
        return ", ".join(quoted[:_NAMES_SHOWN]) + f" and {len(quoted) - _NAMES_SHOWN} more"
    return last.join(filter(None, [", ".join(quoted[:-1]), quoted[-1]]))


@dataclass(eq=False)
class _Cell:
    """A cell of the student's. own: the course's cell that it is a copy of. region: the place that it stands at."""

    number: int
    raw: RawCell
    contents: Contents
    own: Place | None = None
    region: int = 0
    in_tail: bool = False
    answers: set[str] = field(default_factory=set)
    key: int = 0

    @property
    def is_code(self) -> bool:
        return self.raw.kind == "code"


def salvage_cells(raw: RawNotebook, file: str, edition: Edition) -> Salvaged:
    """Return what the cells of one notebook hand in. Raises Refused where nothing in it is the course's."""
    return _Salvage(raw, file, edition).result()


class _Salvage:
    def __init__(self, raw: RawNotebook, file: str, edition: Edition) -> None:
        self.raw, self.file, self.edition = raw, file, edition
        self.names = edition.answers
        self.exercise = {answer.name: answer.exercise for answer in edition.assignment.answers}
        self.repairs = list(raw.repairs)
        self.cells = [
            _Cell(number, cell, contents(cell.source, self.names) if _may_be_code(cell) else Contents())
            for number, cell in enumerate(self._joined(raw.cells))
        ]
        self.given = edition.given

    def result(self) -> Salvaged:
        known = [cell for cell in self.cells if self._recognise(cell)]
        if not known and not any(self._spells_out(cell) for cell in self.cells):
            raise Refused(f"{self.file} holds nothing of this notebook's exercises: it is another notebook")
        self._divide()
        counting = {name: cell for name in self._ordered_names() if (cell := self._answer_to(name)) is not None}
        for name, cell in counting.items():
            cell.answers.add(name)
        students = [cell for cell in self.cells if cell.answers or not self._is_ours(cell)]
        self._tell_answers(counting)
        self._tell_checks()
        ordered = self._in_order(students)
        labels = self._labels(ordered, counting)
        return self._assemble(ordered, labels, frozenset(counting))

    def _spells_out(self, cell: _Cell) -> bool:
        # The lesson, handed in by mistake, imports the functions that are asked for.
        found = re.findall(r"^\s*(?:(?:async\s+)?def|class)\s+(\w+)|^(\w+)\s*=", cell.raw.source, re.MULTILINE)
        return bool(cell.contents.defines & self.names & {name for pair in found for name in pair})

    def _ordered_names(self) -> list[str]:
        return [answer.name for answer in self.edition.assignment.answers]

    def _joined(self, cells: Sequence[RawCell]) -> list[RawCell]:
        """Join an answer that was split within its function: no Python apart, an answer together."""
        joined: list[RawCell] = []
        for cell in cells:
            before = joined[-1] if joined else None
            if before is not None and before.kind == cell.kind == "code" and contents(cell.source, self.names).broken:
                text = f"{before.source}\n{cell.source}"
                together = contents(text, self.names)
                if not together.broken and together.writes & self.names:
                    joined[-1] = RawCell("code", text, before.names)
                    which = ", ".join(sorted(together.writes & self.names))
                    self.repairs.append(f"An answer that had been split into two cells was joined: {which}.")
                    continue
            joined.append(cell)
        return joined

    # Which of the course's cells a cell is

    def _recognise(self, cell: _Cell) -> bool:
        """Find the course's cell that a cell is a copy of: by its text, else by its label, else by what it defines."""
        text = plain(cell.raw.source)
        same = self.edition.by_text.get(text, [])
        labelled = [place for label in cell.raw.names for place in self.edition.places if place.name == label]
        taken = {id(other.own) for other in self.cells[: cell.number]}
        untaken = [place for place in same if id(place) not in taken]
        cell.own = next((place for place in labelled if place in same), None) or next(iter(untaken or same), None)
        if cell.own is None and labelled:
            mine = cell.contents.writes & self.names
            # A label that belongs to another answer than the one that is written there is a mistake.
            if labelled[0].kind != "answer" or not mine or labelled[0].name in cell.contents.defines:
                cell.own = labelled[0]
        elif cell.own is None:
            cell.own = self._by_content(cell, text)
        return cell.own is not None

    def _by_content(self, cell: _Cell, text: str) -> Place | None:
        if not cell.is_code and (heading := self.edition.by_heading.get(text.partition("\n")[0])):
            return heading
        for place in self.edition.places:
            if place.kind == "prose":
                continue
            given = self.given[place.name]
            if place.kind == "answer":
                if cell.contents.only_unwritten and cell.contents.defines == given.defines:
                    return place
            elif place.name in cell.contents.defines or len(cell.contents.binds & given.binds) > 2:
                return place
        return None

    def _is_ours(self, cell: _Cell) -> bool:
        """Tell whether a cell says nothing of the student's own: a copy of ours, or a stub."""
        place = cell.own
        if not cell.raw.source.strip():
            return True
        if cell.contents.only_unwritten and cell.contents.unwritten <= self.names:
            return True
        if place is None or place.kind == "answer":
            return False
        if plain(cell.raw.source) == plain(place.given):
            return True
        if cell.contents.writes & self.names:
            return False
        if place.kind == "prose":
            return not (cell.is_code and cell.contents.binds)
        return bool(cell.contents.binds & self.given[place.name].binds) or not cell.contents.binds

    def _divide(self) -> None:
        """Say of each cell after which of the course's it stands."""
        marks = [cell for cell in self.cells if cell.own is not None]
        last = max((cell.number for cell in marks if self._is_ours(cell)), default=-1)
        region = 0
        for cell in self.cells:
            if cell.own is not None:
                region = self.edition.index(cell.own.name)
            elif not marks:
                mine = [self.edition.index(name) for name in cell.contents.defines & self.names]
                region = min(mine, default=region)
            cell.region = region
            cell.in_tail = cell.number > last
        order = [cell.region for cell in marks]
        if order != sorted(order):
            self.repairs.append("The notebook's cells stood in another order, which was restored.")

    # Which cell answers

    def _answer_to(self, name: str) -> _Cell | None:
        """Return the cell that counts as the answer called `name`."""
        writing = [cell for cell in self.cells if name in cell.contents.writes and not self._is_ours(cell)]
        for chosen in (
            [cell for cell in writing if cell.is_code and not cell.contents.broken],
            [cell for cell in writing if not cell.contents.broken],
            [cell for cell in writing if cell.is_code],
        ):
            own = [cell for cell in chosen if self._stands_for(cell, name)]
            if own or chosen:
                return (own or chosen)[-1]
        return None

    def _stands_for(self, cell: _Cell, name: str) -> bool:
        here = self.edition.places[cell.region].exercise == self.exercise[name]
        return here or cell.in_tail or (cell.own is not None and cell.own.name == name)

    # Order

    def _in_order(self, students: list[_Cell]) -> list[_Cell]:
        for cell in students:
            slots = [self.edition.index(name) for name in cell.answers]
            cell.key = min(slots, default=cell.region)
        ordered = sorted(students, key=lambda cell: (cell.key, cell.number))
        for cell in list(ordered):
            # Nothing in its exercise may replace the answer that counts.
            for other in [other for other in ordered[ordered.index(cell) + 1 :] if not other.answers]:
                if cell.answers & other.contents.binds and self._exercise(other) == self._exercise(cell):
                    _move(ordered, other, cell)
        bound = set(_NEVER_PULLED)
        for place in self.edition.places:
            if place.kind != "answer" and place.kind != "prose":
                bound |= self.given[place.name].binds
        for cell in list(ordered):
            self._pull(ordered, cell, bound, set())
        return ordered

    def _pull(self, ordered: list[_Cell], cell: _Cell, bound: set[str], pulling: set[int]) -> None:
        """Move in front of a cell the added ones, from further down, that define what it needs."""
        if not cell.is_code or cell.number in pulling:
            return
        pulling.add(cell.number)
        at = ordered.index(cell)
        before = {name for other in ordered[:at] for name in other.contents.binds}
        missing = cell.contents.uses - cell.contents.binds - before - bound - self.names
        for name in sorted(missing):
            later = ordered[ordered.index(cell) + 1 :]
            helper = next((o for o in later if o.is_code and not o.answers and name in o.contents.binds), None)
            if helper is not None:
                if self._exercise(helper) != self._exercise(cell):
                    self.repairs.append(f"The cell that defines {_short(name)} stands after the answer that needs it.")
                _move(ordered, helper, cell)
                self._pull(ordered, helper, bound, pulling)

    def _exercise(self, cell: _Cell) -> int:
        return self.edition.places[cell.key].exercise

    def _labels(self, ordered: list[_Cell], counting: dict[str, _Cell]) -> dict[int, str]:
        """Return which answer's place each cell takes, by its number: what counts, else what bears the label, else
        what stands there.
        """
        labels: dict[int, str] = {}
        for name in self._ordered_names():
            slot = self.edition.index(name)
            if name in counting:
                takes = counting[name]
            else:
                here = [cell for cell in ordered if cell.key == slot and cell.is_code]
                before = [cell for cell in ordered if cell.key == slot - 1 and cell.is_code and not cell.answers]
                labelled = [cell for cell in here if cell.own is not None and cell.own.name == name]
                takes = next(iter(reversed(labelled or here or before)), None)
            if takes is not None and takes.number not in labels:
                labels[takes.number] = name
                if takes.key == slot - 1:
                    takes.key = slot
        return labels

    # What is told

    def _tell_answers(self, counting: dict[str, _Cell]) -> None:
        unlabelled = []
        for name, cell in counting.items():
            others = [o for o in self.cells if name in o.contents.writes and o is not cell and not self._is_ours(o)]
            here = self.edition.places[cell.region].exercise
            if not cell.is_code:
                self.repairs.append(f"The cell of {name} was of type {cell.raw.kind}; it was read as code.")
            if here != self.exercise[name]:
                self.repairs.append(f"The answer {name} was found among the cells of exercise {here}.")
            elif name not in cell.raw.names:
                unlabelled.append(name)
            if any(self._stands_for(other, name) for other in others):
                self.repairs.append(f"{name} is defined in more than one cell: the last one counts.")
        if unlabelled:
            which = ", ".join(unlabelled)
            self.repairs.append(f"Found by the function that the cell defines, not by its label: {which}.")

    def _tell_checks(self) -> None:
        held: dict[str, list[_Cell]] = {}
        for cell in self.cells:
            if cell.own is not None and cell.own.kind in ("check", "code"):
                held.setdefault(cell.own.name, []).append(cell)
        ours = [place for place in self.edition.places if place.kind in ("check", "code")]
        missing = [place.name for place in ours if place.name not in held]
        changed = [
            place.name
            for place in ours
            if place.name in held and all(plain(c.raw.source) != plain(place.given) for c in held[place.name])
        ]
        for what, names in (("were missing", missing), ("had been changed", changed)):
            if names:
                shown = ", ".join(names[:_NAMES_SHOWN]) + (f" and {len(names) - _NAMES_SHOWN} more" * (len(names) > 6))
                self.repairs.append(f"Cells of the course that {what} were replaced by our own: {shown}.")
        repeated = [
            name for name, number in Counter(c.own.name for c in self.cells if c.own is not None).items() if number > 1
        ]
        if any(name not in self.names for name in repeated):
            self.repairs.append("Copies of the course's own cells were left out.")

    # The result

    def _assemble(self, ordered: list[_Cell], labels: dict[int, str], written: frozenset[str]) -> Salvaged:
        code: list[StudentCell] = []
        called: list[str] = []
        for cell in ordered:
            label = labels.get(cell.number)
            if cell.is_code or cell.answers:
                code.append(StudentCell(cell.raw.source, self._exercise(cell), label))
                called.append(_called(cell, label))
        copy: list[CopiedCell] = []
        for index, place in enumerate(self.edition.places):
            here = [cell for cell in ordered if cell.key == index]
            if not any(labels.get(cell.number) == place.name for cell in here):
                copy.append(CopiedCell("markdown" if place.kind == "prose" else "code", place.given, place))
            for cell in here:
                taken = place if labels.get(cell.number) == place.name else None
                copy.append(CopiedCell("code" if cell.answers else cell.raw.kind, cell.raw.source, taken))
        repairs = tuple(dict.fromkeys(self.repairs))
        return Salvaged(tuple(code), tuple(copy), repairs, self.raw.cut, written, tuple(called))


def _may_be_code(cell: RawCell) -> bool:
    # Prose is no Python; a cell of code whose type was changed is.
    return cell.kind == "code" or re.search(r"^(?:def|class) ", cell.source, re.MULTILINE) is not None


def _short(name: str) -> str:
    return name if len(name) <= 60 else name[:59] + "…"


def _move(ordered: list[_Cell], cell: _Cell, before: _Cell) -> None:
    ordered.remove(cell)
    ordered.insert(ordered.index(before), cell)
    cell.key = before.key


def _called(cell: _Cell, label: str | None) -> str:
    if label:
        return f"the cell of {label}"
    first = next((line.strip() for line in cell.raw.source.splitlines() if line.strip()), "")
    first = "".join(letter for letter in first if letter.isprintable())
    return f"your cell “{first if len(first) <= 40 else first[:39] + '…'}”"


def notebook_json(salvaged: Salvaged, edition: Edition, outputs: dict[str, list[dict[str, Any]]], about: Any) -> str:
    """Return the clean copy as a notebook for nbgrader.

    outputs: of each check, by its name. about: plain data kept in the notebook's metadata under "trainmem". The
    student's prose is shown as text: it is opened in the instructor's browser, where markup would run.
    """
    cells = []
    for number, cell in enumerate(salvaged.copy):
        made: dict[str, Any] = {"cell_type": cell.kind, "id": f"added-{number}", "metadata": {}, "source": cell.source}
        if cell.place is not None:
            made |= {"id": cell.place.name, "metadata": cell.place.metadata}
        elif cell.kind != "code":
            fence = "~" * (3 + max((len(run) for run in re.findall("~+", cell.source)), default=0))
            made |= {"cell_type": "markdown", "source": f"{fence}\n{cell.source}\n{fence}"}
        if cell.kind == "code":
            name = cell.place.name if cell.place is not None else ""
            made |= {"execution_count": None, "outputs": outputs.get(name, [])}
        cells.append(made)
    metadata = edition.metadata | {"trainmem": about}
    notebook = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
