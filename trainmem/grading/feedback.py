"""A student's page: marks, what each check said, what was repaired and what was cut.

It says what the checks say to students and nothing else of them. Whatever comes from a submission is escaped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from jinja2 import Environment, Template

MAX_MESSAGE_CHARACTERS = 2_000
MAX_SENTENCES = 30

_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{{ title }}: {{ student }}</title>
<style>
body { font: 1rem/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 48rem; margin: 0 auto;
       padding: 1rem; overflow-wrap: anywhere }
h1 { font-size: 1.5rem; line-height: 1.25 } h2 { font-size: 1.2rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% }
caption { text-align: left; padding-bottom: .25rem; color: #444 }
th, td { text-align: left; vertical-align: top; padding: .4rem .5rem; border-top: 1px solid #bbb; font-weight: normal }
thead th, tfoot th, tfoot td { font-weight: bold }
.marks, thead th, .checks th code { white-space: nowrap }
.said { white-space: pre-wrap; font-family: ui-monospace, monospace; font-size: .9rem; margin: .25rem 0 0 }
.passed { color: #00543d } .failed { color: #8a2500 }
@media (prefers-color-scheme: dark) {
  :root { color-scheme: dark }
  body { color: #e8e8e8; background: #181818 } caption { color: #bbb } th, td { border-color: #555 }
  a { color: #8ab4f8 } .passed { color: #6fd6a8 } .failed { color: #ffa07d }
}
@media (max-width: 30rem) {
  .checks thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden }
  .checks th code { white-space: normal }
  .checks tr { display: block; border-top: 1px solid #bbb; padding: .4rem 0 }
  .checks th, .checks td { display: block; border: 0; padding: 0 }
}
</style>
</head>
<body>
<main>
<h1>{{ title }}</h1>
<p>Submission of <strong>{{ student }}</strong></p>
{% if reason %}
<h2>Not graded</h2>
<p>This submission could not be graded, because {{ reason }}. No mark was recorded for it. Hand in the notebook again,
or ask your instructor.</p>
{% else %}
<h2>Marks</h2>
<table>
<caption>Marks for each exercise</caption>
<thead><tr><th scope="col">Exercise</th><th scope="col">Marks</th></tr></thead>
<tbody>
{% for exercise in exercises %}
<tr><th scope="row"><a href="#exercise-{{ exercise.number }}">{{ exercise.title }}</a></th>
<td class="marks">{{ exercise.score|mark }} of {{ exercise.max_score|mark }}</td></tr>
{% endfor %}
{% if penalty %}
<tr><th scope="row">Handed in late</th><td class="marks">−{{ penalty|mark }}</td></tr>
{% endif %}
</tbody>
<tfoot><tr><th scope="row">Total</th><td class="marks">{{ total|mark }} of {{ max_total|mark }}</td></tr></tfoot>
</table>
{% for heading, sentences in lists %}
{% if sentences %}
<h2>{{ heading }}</h2>
<ul>
{% for sentence in sentences %}
<li>{{ sentence }}</li>
{% endfor %}
</ul>
{% endif %}
{% endfor %}
{% for exercise in exercises %}
<h2 id="exercise-{{ exercise.number }}">{{ exercise.title }}</h2>
{% for name, comment in exercise.comments %}
<p>On <code>{{ name }}</code>: {{ comment }}</p>
{% endfor %}
<table class="checks">
<caption>What the checks of this exercise said</caption>
<thead><tr><th scope="col">Check</th><th scope="col">Result</th><th scope="col">Marks</th></tr></thead>
<tbody>
{% for check in exercise.checks %}
<tr><th scope="row"><code>{{ check.check }}</code></th>
<td><span class="{{ 'passed' if check.outcome == 'passed' else 'failed' }}">{{ check.result }}</span>
{% if check.with_right_functions %}<span>(with right functions in place of your earlier answers)</span>{% endif %}
{% if check.message %}
<p class="said">{{ check.message }}</p>
{% endif %}
</td>
<td class="marks">{{ check.score|mark }} of {{ check.max_score|mark }}</td></tr>
{% endfor %}
</tbody>
</table>
{% endfor %}
{% endif %}
</main>
</body>
</html>
"""

_RESULTS = {"passed": "passed", "failed": "not passed", "lost": "not finished"}


def _mark(points: float) -> str:
    return f"{points:.2f}".rstrip("0").rstrip(".")


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["mark"] = _mark
    return environment.from_string(_PAGE)


def _bounded(text: str) -> str:
    cut = len(text) - MAX_MESSAGE_CHARACTERS
    return text if cut <= 0 else f"{text[:MAX_MESSAGE_CHARACTERS]}… ({cut:,} more characters)"


def _sentences(items: Sequence[str]) -> list[str]:
    shown = [_bounded(item) for item in items[:MAX_SENTENCES]]
    return shown + [f"… and {len(items) - len(shown)} more."] * (len(items) > len(shown))


@dataclass
class _Exercise:
    number: int
    title: str
    checks: list[dict[str, Any]] = field(default_factory=list)
    comments: list[tuple[str, str]] = field(default_factory=list)

    @property
    def score(self) -> float:
        return sum(check["score"] for check in self.checks)

    @property
    def max_score(self) -> float:
        return sum(check["max_score"] for check in self.checks)


def graded_page(
    student: str,
    title: str,
    titles: Mapping[int, str],
    about: Mapping[str, Any],
    scores: Mapping[str, float],
    comments: Mapping[int, Sequence[tuple[str, str]]],
    penalty: float,
) -> str:
    """Return the page of a graded submission.

    titles: of each exercise. about: what grading told (`outcome.told`). scores: of each check, as the gradebook has
    them now. comments: for each exercise, pairs of an answer's name and what is said on it. penalty: points off.
    """
    exercises = {number: _Exercise(number, titles.get(number, f"Exercise {number}")) for number in titles}
    for check in about["checks"]:
        made = dict(check, score=scores.get(check["check"], 0.0), message=_bounded(check["message"]))
        made["result"] = _RESULTS.get(check["outcome"], check["outcome"])
        exercises.setdefault(check["exercise"], _Exercise(check["exercise"], f"Exercise {check['exercise']}"))
        exercises[check["exercise"]].checks.append(made)
    for number, said in comments.items():
        exercises[number].comments.extend((name, _bounded(comment)) for name, comment in said)
    listed = list(exercises.values())
    return _template().render(
        title=title,
        student=student,
        reason=None,
        exercises=listed,
        penalty=penalty,
        total=max(0.0, sum(exercise.score for exercise in listed) - penalty),
        max_total=sum(exercise.max_score for exercise in listed),
        lists=[
            ("What was repaired in your file", _sentences(about.get("repairs", ()))),
            ("What was cut", _sentences(about.get("cut", ()))),
            ("What happened when your cells ran", _sentences(about.get("notes", ()))),
        ],
    )


def ungraded_page(student: str, title: str, reason: str) -> str:
    """Return the page of a submission that could not be graded, because `reason`."""
    return _template().render(title=title, student=student, reason=_bounded(reason))
