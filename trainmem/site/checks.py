"""Quick checks as choices that unfold: the browser's own ``<details>``, for mouse, touch and keys, without a script."""

from trainmem.review import QuickCheck
from trainmem.review.markup import as_html


def check_html(check: QuickCheck) -> str:
    """The question, and each choice with what is right or wrong about it behind it."""
    parts = []
    for letter, choice in zip("ABCDEFGH", check.choices, strict=False):
        kind, verdict = ("right", "✓ Right.") if choice.right else ("wrong", "✗ Not this one.")
        text, why = as_html(check.filled(choice.text)), as_html(check.filled(choice.why))
        parts.append(
            f'<details class="{kind}"><summary>{letter} · {text}</summary><p><b>{verdict}</b> {why}</p></details>'
        )
    question = f"<p><b>Quick check.</b> {as_html(check.filled(check.question))}</p>"
    return f'<div class="check" role="group" aria-label="Quick check">{question}{"".join(parts)}</div>'
