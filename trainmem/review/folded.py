"""Quick checks and questions as Markdown with folded answers: for GitHub, print, and readers without a kernel."""

from collections.abc import Iterable

from trainmem.review.records import Choice, Question, QuickCheck

#: The letters of a quick check's choices, in order, wherever it is shown.
LETTERS = "ABCDEFGH"

#: How the folded text of a quick check begins.
WITHOUT_BUTTONS = "<details><summary>The same question without buttons</summary>"


def lettered(check: QuickCheck) -> list[tuple[str, Choice]]:
    """Each choice with its letter. Raises ``ValueError`` where there are more choices than letters."""
    if len(check.choices) > len(LETTERS):
        raise ValueError(
            f"quick check {check.name!r} has {len(check.choices)} choices and there are {len(LETTERS)} letters: leave "
            "some out, or add letters in folded.py"
        )
    return list(zip(LETTERS[: len(check.choices)], check.choices, strict=True))


def check_markdown(check: QuickCheck) -> str:
    """The question, its choices, and behind a fold what is right and why, choice by choice."""
    lines = [WITHOUT_BUTTONS, "", check.filled(check.question), ""]
    lines += [f"- **{letter}** {check.filled(choice.text)}" for letter, choice in lettered(check)]
    lines += ["", "<details><summary>Answer</summary>", ""]
    for letter, choice in lettered(check):
        verdict = "right" if choice.right else "wrong"
        lines.append(f"- **{letter}** is {verdict}. {check.filled(choice.why)}")
    return "\n".join([*lines, "", "</details>", "</details>"])


def questions_markdown(questions: Iterable[Question]) -> str:
    """Numbered questions, each with its answer behind a fold."""
    parts = [
        f"**{number}.** {question.filled(question.question)}\n\n<details><summary>Answer</summary>\n\n"
        f"{question.filled(question.answer)}\n\n</details>"
        for number, question in enumerate(questions, 1)
    ]
    return "\n\n".join(parts)
