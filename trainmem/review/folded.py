"""Quick checks and questions as Markdown with folded answers: for GitHub, print, and readers without a kernel."""

from collections.abc import Iterable

from trainmem.review.records import Question, QuickCheck


def check_markdown(check: QuickCheck) -> str:
    """The question, its choices, and behind a fold what is right and why, choice by choice."""
    letters = "ABCDEFGH"
    lines = ["<details><summary>The same question without buttons</summary>", "", check.filled(check.question), ""]
    lines += [
        f"- **{letter}** {check.filled(choice.text)}" for letter, choice in zip(letters, check.choices, strict=False)
    ]
    lines += ["", "<details><summary>Answer</summary>", ""]
    for letter, choice in zip(letters, check.choices, strict=False):
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
