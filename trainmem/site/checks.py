"""Quick checks as choices that unfold: the browser's own ``<details>``, for mouse, touch and keys, without a script."""

from trainmem.review import QuickCheck
from trainmem.review.folded import lettered
from trainmem.review.markup import as_html
from trainmem.review.widget import VERDICTS


def check_html(check: QuickCheck) -> str:
    """The question, and each choice with what is right or wrong about it behind it.

    Raises ``ValueError`` for a check with more choices than letters.
    """
    parts = []
    for letter, choice in lettered(check):
        kind, verdict = "right" if choice.right else "wrong", VERDICTS[choice.right]
        text, why = as_html(check.filled(choice.text)), as_html(check.filled(choice.why))
        parts.append(
            f'<details class="{kind}"><summary>{letter} · {text}</summary><p><b>{verdict}</b> {why}</p></details>'
        )
    question = f"<p><b>Quick check.</b> {as_html(check.filled(check.question))}</p>"
    return f'<div class="check" role="group" aria-label="Quick check">{question}{"".join(parts)}</div>'
