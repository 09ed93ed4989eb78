"""The notebook's first two cells: how to work, and what every check uses to ask an answer and to say what is wrong."""

# %% [markdown]
# # How much memory does training take?
#
# {{badge}}
#
# Five exercises. You write nine short functions; together they answer the question that decides every
# training run: *does it fit, and if not, what is the cheapest change that makes it fit?*
#
# 1. **Parameters** of a layer and of a model
# 2. **Model states**: what the optimizer adds to them
# 3. **Activations**: what one layer keeps for its backward pass
# 4. **The memory timeline** of one step, with checkpoints every $k$ layers
# 5. **The cheapest fix**
#
# **How to work.** Run the cells from the top (Shift + Enter). Replace each `raise NotImplementedError()` by your answer,
# run the cell, then run the check below it. A check tells you what it expected and, where it recognises the mistake,
# its name. Use plain Python; NumPy is there if you like it. You may add cells of your own anywhere; leave the check
# cells as they are. Where your work is graded, each exercise brings 10 points, and every check asks further cases that
# are not shown.
#
# **Units.** Memory is in bytes. 1 GB = $10^9$ bytes and 1 GiB = $2^{30}$ bytes, 7% more: keep them apart.
#
# **Notation.** $s$ sequence length · $b$ micro-batch, in sequences · $h$ hidden size · $a$ attention heads · $L$ layers ·
# $V$ vocabulary · $\Psi$ (`psi`) parameters · $f$ width of the MLP · $K$ optimizer bytes per parameter · $k$ layers between
# two checkpoints · $c$ bytes of one checkpoint · $A$ bytes of one layer's activations · $t$ degree of tensor parallelism.

# %% checking
# What the checks use. There is nothing to change in this cell, but run it first.
CHECK_SEED = "practice"  # the hidden cases are drawn from it; a grader sets its own
REMARKS = []  # what checks that pass have to say all the same; shown by the cell after them


class CheckFailed(AssertionError):
    """What a check has to say: printed as it is, without a traceback."""

    def _render_traceback_(self):
        return [*self.args[0].splitlines()]


class NotWritten(CheckFailed):
    """The answer is still the stub, or its cell has not run."""


class Misread(Exception):
    """An answer came back as something of another kind; the text says what."""


def as_number(value):
    """Return a real, finite number as int, float or Fraction, or raise Misread."""
    if isinstance(value, int) and not isinstance(value, bool):  # most are, and a timeline has many
        return int(value)
    from decimal import Decimal
    from fractions import Fraction
    from math import isfinite
    from numbers import Integral, Rational, Real

    if getattr(value, "shape", None) == ():  # a NumPy scalar or an array without axes
        value = value.item()
    if value is None:
        raise Misread("None: does every path end in return? (print shows a value, return gives it back)")
    if isinstance(value, str):
        raise Misread("text: return the number itself, without quotes or formatting")
    if isinstance(value, bool):
        raise Misread("True or False: a comparison where a number was meant?")
    if isinstance(value, complex):
        raise Misread("a complex number: a root of something negative?")
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Rational):
        return Fraction(value.numerator, value.denominator)
    if isinstance(value, (Real, Decimal)):
        if isfinite(value):
            return float(value)
        raise Misread("a number that is not finite (nan or inf): a division by zero, or an overflow?")
    if isinstance(value, (list, tuple)) or getattr(value, "shape", None):
        raise Misread(f"a {type(value).__name__} of {len(value)}: return one number, not several in a row")
    raise Misread(f"a {type(value).__name__}: return one number")


def as_numbers(values, most):
    """Return the first `most` + 1 numbers of any iterable as a list, or raise Misread."""
    from itertools import islice

    if values is None:
        as_number(values)
    if isinstance(values, (str, bytes)):
        raise Misread("text: return a list of numbers")
    try:
        iterator = iter(values)
    except TypeError:
        raise Misread(f"a single {type(values).__name__}: return the whole sequence of numbers") from None
    numbers = []
    for i, value in enumerate(islice(iterator, most + 1)):
        try:
            numbers.append(as_number(value))
        except Misread as error:
            raise Misread(f"a sequence whose item {i} is {error}") from None
    return numbers


def as_pair(value):
    """Return (name or None, number) from anything of length two, or raise Misread."""
    if value is None or isinstance(value, str):
        raise Misread(f"{'None' if value is None else 'text'} alone: return the pair (name, peak)")
    try:
        length = len(value)
    except TypeError:
        raise Misread(f"a single {type(value).__name__}: return the pair (name, peak)") from None
    if length != 2:
        raise Misread(f"a {type(value).__name__} of {length}: return the pair (name, peak)")
    name, peak = value
    if not (name is None or isinstance(name, str)):
        raise Misread(f"a pair that begins with a {type(name).__name__}: the name comes first, then the peak")
    try:
        return (None if name is None else str.__str__(name)), as_number(peak)  # the text, also of a subclass of str
    except Misread as error:
        raise Misread(f"a pair whose peak is {error}") from None


def agrees(got, want):
    """Tell whether numbers agree within 1e-9 relative, and sequences and pairs item by item."""
    from fractions import Fraction

    if isinstance(want, (list, tuple)):
        return len(got) == len(want) and all(agrees(g, w) for g, w in zip(got, want, strict=True))
    if got == want or None in (got, want) or isinstance(want, str) or isinstance(got, str):
        return got == want
    return abs(Fraction(got) - Fraction(want)) * 10**9 <= abs(Fraction(want))


def shown(value):
    """Return a value as text for a reader: thousands set apart, long things cut."""
    if isinstance(value, float) and value.is_integer() and value < 2**53:
        value = int(value)
    if isinstance(value, int):
        return f"{value:,}" if abs(value) < 10**40 else f"a whole number of {value.bit_length()} bits"
    if isinstance(value, (list, tuple)):
        items = [shown(item) for item in value[:14]] + ["…"] * (len(value) > 14)
        return ("({})" if isinstance(value, tuple) else "[{}]").format(", ".join(items))
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


class ask:
    """One call of an answer. The lambda looks the function up late, so that a missing one is reported by its name."""

    def __init__(self, answer, *args, **options):
        self.answer, self.args, self.options = answer, args, options
        self.name = answer.__code__.co_names[0]

    def text(self):
        """The call as one would type it."""
        words = [repr(value) for value in self.args] + [f"{key}={value!r}" for key, value in self.options.items()]
        return f"{self.name}({', '.join(words)})"

    def quiet(self):
        """Warnings and stderr go where prints go: nbgrader takes anything on stderr for a failure."""
        import sys
        from contextlib import redirect_stderr

        return redirect_stderr(sys.stdout)

    def reply(self, read):
        """The answer's value, read at once; anything else that happens is said in a sentence."""
        from logging import CRITICAL, disable, root
        from traceback import extract_tb

        try:
            function = self.answer()
        except NameError:
            function = None
        if not callable(function):
            raise NotWritten(f"{self.name}: not defined. Run its cell first; a syntax error there leaves it undefined.")
        level = root.manager.disable
        disable(CRITICAL)  # a log handler may hold the real stderr
        try:
            with self.quiet():
                return read(function(*self.args, **self.options))
        except Misread as misread:
            raise CheckFailed(self.misread(misread)) from None
        except (Exception, SystemExit) as error:
            if isinstance(error, NotImplementedError) and not error.args:  # the stub's own line
                inner = getattr(error, "function", None) or extract_tb(error.__traceback__)[-1].name
                raise NotWritten(f"{inner}: not written yet") from None
            raised = type(error).__name__
            raise CheckFailed(self.raised(raised, error, extract_tb(error.__traceback__)[-1])) from None
        finally:
            disable(level)

    def gives(self, want, mistakes=None, also=(), remark=None):
        """Fail unless the answer is `want` or one of `also`; name the mistake that it looks like.

        A list is wanted as a sequence of numbers, a tuple as a pair (name, peak), anything else as a number.
        `mistakes` maps the name of a mistake to the value that it gives, or is a function from the value to a name.
        `remark` is what to say where one of `also` came, although the check passes.
        """
        if isinstance(want, list):
            got = self.reply(lambda value: as_numbers(value, len(want)))
        else:
            got = self.reply(as_pair if isinstance(want, tuple) else as_number)
        if agrees(got, want):
            return
        if any(agrees(got, value) for value in also):
            if remark and remark not in REMARKS:
                REMARKS.append(remark)
            return
        if callable(mistakes):
            name = mistakes(got)
        else:
            named = (mistake for mistake, value in (mistakes or {}).items() if agrees(got, value))
            name = next(named, None)
        raise CheckFailed(self.differs(got, want, name))

    def is_refused(self):
        """Fail unless the call raises ValueError."""
        from itertools import islice

        def refusal(function):
            def call(*args, **options):
                try:
                    value = function(*args, **options)
                    if hasattr(value, "__iter__"):  # a generator raises only when it is read
                        [*islice(value, 1000)]
                except ValueError:
                    return None
                except NotImplementedError as error:
                    if not error.args:
                        raise
                    return "raised NotImplementedError"
                except Exception as error:
                    return f"raised {type(error).__name__}"
                return "returned a value"

            return call

        function = self.answer
        self.answer = lambda: refusal(function())
        happened = self.reply(lambda outcome: outcome)
        if happened:
            raise CheckFailed(self.accepted(happened))

    def misread(self, misread):
        return f"{self.text()} returned {misread}"

    def raised(self, kind, error, where):
        line = f"\n  {where.name}, line {where.lineno}: {where.line}" if where.line else ""
        return f"{self.text()} raised {kind}: {shown_text(error)}{line}"

    def differs(self, got, want, mistake):
        because = f"\nThat is what comes out when {mistake}." if mistake else ""
        return f"{self.text()}\n  expected {shown(want)}\n  got      {shown(got)}{because}"

    def accepted(self, happened):
        return f"{self.text()} {happened}, but nobody knows that name or number: raise a ValueError there."


class probe(ask):
    """The same for a hidden case: it never says what was asked, expected or got, only which mistake it looks like."""

    def quiet(self):
        import os
        from contextlib import ExitStack, redirect_stderr, redirect_stdout

        stack = ExitStack()
        nowhere = stack.enter_context(open(os.devnull, "w"))  # noqa: SIM115
        stack.enter_context(redirect_stdout(nowhere))
        stack.enter_context(redirect_stderr(nowhere))
        return stack

    def misread(self, misread):
        return f"{self.name}: in a case that is not shown it returned {misread}"

    def raised(self, kind, error, where):
        return f"{self.name}: in a case that is not shown it raised {kind}"

    def differs(self, got, want, mistake):
        return f"{self.name}: wrong in a case that is not shown" + (f": {mistake}." if mistake else ".")

    def accepted(self, happened):
        return f"{self.name}: in a case that is not shown it {happened} where a ValueError is due."


def timeline_difference(got, want, events, c, A):
    """Return where a timeline first differs from the right one and the mistake behind it, or (None, None).

    got, want: bytes held after each event. events: one (kind, layer) an event, kind "forward", "rebuild" or "backward".
    """
    from fractions import Fraction
    from itertools import accumulate

    if agrees(got, want):
        return None, None
    kinds = [kind for kind, _ in events]
    layers = kinds.count("forward")
    if len(got) != len(want):
        where = f"{'more than ' * (len(got) > len(want))}{min(len(got), len(want))} values for {len(want)} events"
        if "rebuild" in kinds and len(got) == 2 * layers:
            return where, "the rebuild events are missing"
        if len(got) > len(want):
            return where, "a value before the first event is in it" if got[0] == 0 else "there are too many events"
        return where, "events are missing"
    i = next(i for i, (g, w) in enumerate(zip(got, want, strict=True)) if not agrees(g, w))
    (kind, layer), extra = events[i], Fraction(got[i]) - Fraction(want[i])
    times = {abs(extra) / Fraction(size): unit for unit, size in (("A", A), ("c", c))}
    whole = [f"{shown(int(n)) if n > 1 else ''}{unit}" for n, unit in sorted(times.items()) if n.denominator == 1]
    amount = [*whole, f"{shown(float(abs(extra)) if abs(extra) < 2**53 else int(abs(extra)))} bytes"][0]
    where = f"event {i + 1}, {kind} of layer {layer}: {amount} too {'much' if extra > 0 else 'little'}"
    if agrees(got, [0, *want[:-1]]):
        mistake = "each value is read before its event instead of after it"
    elif agrees([*accumulate(got)], want):
        mistake = "each value is the event's change, not what is held after it"
    elif "rebuild" not in kinds:
        mistake = {
            (True, True): "the activations of a layer are not freed by its backward event",
            (False, True): "two layers' activations are freed by one backward event",
        }.get((extra > 0, kind == "backward"), "a forward event does not add exactly A")
    elif kind == "forward":
        if agrees(extra, A) or agrees(extra, A - c):
            mistake = "the forward pass keeps the layers' activations although they are rebuilt later"
        elif all(agrees(got[j], (j + 1) * c) for j in range(layers)):
            mistake = "every layer keeps a checkpoint, not only the first of each segment"
        elif got[0] == 0:
            mistake = "the first segment has no checkpoint"
        else:
            mistake = "the segments do not start at layers 0, k, 2k, … (are k and the number of segments swapped?)"
    elif kind == "rebuild":
        if agrees(extra, -c):
            mistake = "the checkpoint is freed when its segment is rebuilt, not with the segment's last backward event"
        elif extra > 0:
            mistake = "more than one layer is rebuilt by one event"
        else:
            mistake = "a segment is rebuilt in part, or not the last segment first"
    elif agrees(extra, c):
        mistake = "the checkpoint was not freed"
    elif agrees(extra, -c):
        mistake = "the checkpoint is freed too early: it goes with the segment's last backward event"
    elif extra > 0 and agrees(got[i] - got[i - 1], A):
        mistake = "the segments are not taken from the last to the first"
    else:
        mistake = "a backward event does not free exactly one layer's A"
    return where, mistake


def show_remarks():
    """Print what the checks so far have remarked, once."""
    while REMARKS:
        print(REMARKS.pop(0))


def shown_text(error):
    """An exception's own text, in one line of bounded length."""
    try:
        return " ".join(str(error).split())[:200]
    except Exception:
        return ""
