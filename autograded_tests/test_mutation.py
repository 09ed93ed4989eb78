"""Mutants of the reference answers: what differs on legal input, the checks must reject."""

from functools import cache

import pytest

from autograded_tests.locked_cells import CHECKS, asked_of, run
from autograded_tests.mutants import REFERENCE, TooLong, mutants, outcomes, within
from trainmem_solutions.opening import agrees

SEEDS = range(3)


@cache
def expected(function):
    return list(outcomes(REFERENCE[function], function))


def differs(source, function):
    for got, want in zip(outcomes(source, function), expected(function), strict=True):
        try:
            if not agrees(got, want):
                return True
        except TypeError:  # of another kind
            return True
    return False


def survives(source, function):
    """Whether all checks of the function pass, for some seed."""
    checks = [check for check in CHECKS if asked_of(check) == function]
    for seed in SEEDS:
        try:
            with within(6):
                if not any(run(REFERENCE | {function: source}, checks, seed).values()):
                    return True
        except TooLong:  # whatever is drawn
            return False
    return False


def judged(chosen):
    """Return how many of these mutants differ on legal input, and which of them the checks let pass."""
    different = [(what, source, function) for what, source, function in chosen if differs(source, function)]
    return len(different), [(what, source) for what, source, function in different if survives(source, function)]


def of(function):
    return [(what, source, function) for what, source in mutants(function)]


def test_the_reference_itself_does_not_differ_and_passes():
    for function, source in REFERENCE.items():
        assert not differs(source, function)
        assert survives(source, function)


@pytest.mark.parametrize("function", REFERENCE)
def test_a_sample_of_mutants_is_rejected(function):
    every = of(function)
    number, survivors = judged(every[3 :: max(1, len(every) // 12)])
    assert number >= 3
    assert survivors == []


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_at_least_98_percent_of_the_mutants_that_matter_are_rejected():
    total, surviving = 0, []
    for function in REFERENCE:
        number, survivors = judged(of(function))
        total, surviving = total + number, surviving + survivors
        print(f"{function}: {number} differ, {len(survivors)} survive")
    for what, source in surviving:
        print(f"survives: {what}\n{source}\n")
    assert len(surviving) <= 0.02 * total
