"""The checks against whole answers: right ones pass in full, wrong ones are told what is wrong, whatever is drawn."""

import re

import pytest

from autograded_tests.answers import NAMES, exercise, notebook_cells
from autograded_tests.locked_cells import checks_of, graded, literals, run

SEEDS = range(25)
MANY_SEEDS = range(200)
RIGHT = [(name, answer) for name in NAMES for answer in exercise(name).right]
WRONG = [(name, answer) for name in NAMES for answer in exercise(name).wrong]


def each_right(test):
    return pytest.mark.parametrize(("name", "answer"), RIGHT)(test)


def each_wrong(test):
    return pytest.mark.parametrize(("name", "answer"), WRONG)(test)


def passes_in_full(name, answer, seeds):
    answers, checks = notebook_cells(**{name: answer}), checks_of(name)
    for seed in seeds:
        assert run(answers, checks, seed) == dict.fromkeys(checks), seed


def is_rejected(name, answer, seeds):
    answers, fails, checks = notebook_cells(**{name: answer}), exercise(name).wrong[answer].fails, checks_of(name)
    assert set(fails) <= set(checks)
    for seed in seeds:
        # The checks that the mistake does not concern: some seeds will do.
        said = graded(answers, checks if seed % 8 == 0 else fails, seed)
        assert {check for check, message in said.items() if message} == set(fails), (seed, said)
        for check, phrase in fails.items():
            assert (phrase or "") in said[check], seed
        # The hidden cases alone reject it too: to answer the shown ones by heart is of no use.
        hidden = graded(answers, fails, seed, "hidden")
        assert all(hidden.values()), (seed, hidden)
        for check, message in hidden.items():
            says_nothing_of_the_case(check, message)


def says_nothing_of_the_case(check, message):
    assert not re.search(r"\b(expected|got)\b", message), message
    numbers = set(re.findall(r"\d[\d,.]*", re.sub(r"returned a \w+ of \d+", "", message)))  # its own length may be said
    known = literals(check)
    assert all(number.rstrip(".,") in known for number in numbers), message
    assert len(message.splitlines()) == 1, message


@each_right
def test_a_right_answer_passes_in_full(name, answer):
    passes_in_full(name, answer, SEEDS)


@pytest.mark.long
@each_right
def test_a_right_answer_passes_in_full_over_many_seeds(name, answer):
    passes_in_full(name, answer, MANY_SEEDS)


@each_wrong
def test_a_wrong_answer_fails_the_checks_of_its_mistake_alone(name, answer):
    is_rejected(name, answer, SEEDS)


@pytest.mark.long
@each_wrong
def test_a_wrong_answer_fails_the_checks_of_its_mistake_alone_over_many_seeds(name, answer):
    is_rejected(name, answer, MANY_SEEDS)
