"""Plain data on the wire between the grader and a sandbox.

A frame is four bytes of length (big-endian) and that many bytes of JSON. ``None``, booleans, ints, floats, strings and
lists stand for themselves; everything else is an object with one key: ``t`` tuple, ``d`` dict (as pairs), ``s`` set,
``q`` fraction, ``D`` decimal, ``c`` complex, ``x`` a thing that is no plain data (its type's name).

`encode` is lenient, for it runs beside the student's code and nobody relies on it. `decode` relies on nothing: what it
gives back is built here, of exact built-in types, and is small.
"""

import json
import linecache
import struct
import sys
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any

MAX_FRAME_BYTES = 1 << 20
MAX_VALUES = 10_000
MAX_PAIRS = 1_000  # a dict is hashed here, and hashes can be made to collide
MAX_DEPTH = 12
MAX_TEXT = 2_000
MAX_BITS = 1_023  # such a number is never too large for a float
MAX_EXPONENT = 300

_HEADER = struct.Struct(">I")


class Malformed(ValueError):
    """Bytes that no sandbox of ours writes by itself."""


class Foreign:
    """Stands for a returned object that is no plain data; all that is known is what its type called itself."""

    __slots__ = ("type_name",)

    def __init__(self, type_name: str) -> None:
        self.type_name = type_name

    def __repr__(self) -> str:
        return f"<{self.type_name} object>"


def pack(message: dict[str, Any]) -> bytes:
    """A frame, ready to be sent. Raises OverflowError above `MAX_FRAME_BYTES`."""
    body = json.dumps(message, separators=(",", ":")).encode()
    if len(body) > MAX_FRAME_BYTES:
        raise OverflowError(f"the result takes more than {MAX_FRAME_BYTES} bytes")
    return _HEADER.pack(len(body)) + body


def body_size(header: bytes) -> int:
    """Bytes that follow a frame's four-byte header. Raises Malformed above `MAX_FRAME_BYTES`."""
    (size,) = _HEADER.unpack(header)
    if size > MAX_FRAME_BYTES:
        raise Malformed(f"a frame of {size} bytes")
    return size


def unpack(body: bytes) -> dict[str, Any]:
    """The message in a frame's body: a JSON object, not yet looked into."""
    try:
        message = json.loads(body.decode())
    except (ValueError, RecursionError) as error:
        raise Malformed("not JSON") from error
    if type(message) is not dict:
        raise Malformed("not an object")
    return message


def encode(value: Any) -> Any:
    """JSON for a value: base-class slots rather than the methods of subclasses, iterables read to their end.

    Raises OverflowError for more than `MAX_VALUES` values, nesting beyond `MAX_DEPTH`, or too large a number.
    """
    left = MAX_VALUES

    def items(values: Iterator[Any], depth: int) -> list[Any]:
        return [walk(item, depth + 1) for item in values]

    def walk(value: Any, depth: int) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise OverflowError(f"the result holds more than {MAX_VALUES} values")
        if depth > MAX_DEPTH:
            raise OverflowError(f"the result is nested more than {MAX_DEPTH} deep")
        kind = type(value)
        if value is None or kind is bool:
            return value
        if issubclass(kind, int):
            return _bounded(int.__int__(value))
        if issubclass(kind, float):
            return float.__float__(value)
        if issubclass(kind, str):
            text = str.__str__(value)
            return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"
        if issubclass(kind, list):
            return items(list.__iter__(value), depth)
        if issubclass(kind, tuple):
            return {"t": items(tuple.__iter__(value), depth)}
        if issubclass(kind, dict):
            if dict.__len__(value) > MAX_PAIRS:
                raise OverflowError(f"the result holds a dict of more than {MAX_PAIRS} entries")
            return {"d": [[walk(key, depth + 1), walk(item, depth + 1)] for key, item in dict.items(value)]}
        if issubclass(kind, set | frozenset):
            return {"s": items(iter(value), depth)}
        if issubclass(kind, complex):
            return {"c": [complex.__complex__(value).real, complex.__complex__(value).imag]}
        if issubclass(kind, Decimal):
            return _decimal(value)
        if issubclass(kind, bytes | bytearray | memoryview | type):
            return {"x": kind.__name__[:60]}
        numpy = sys.modules.get("numpy")
        if numpy is not None and issubclass(kind, numpy.bool_):
            return bool(value)
        if numpy is not None and issubclass(kind, numpy.generic | numpy.ndarray):
            if value.size > MAX_VALUES:
                raise OverflowError(f"the result holds more than {MAX_VALUES} values")
            plain = value.item() if value.ndim == 0 else value.tolist()
            # A long double gives itself back.
            return float(plain) if isinstance(plain, numpy.floating) else walk(plain, depth)
        if issubclass(kind, Integral):
            return _bounded(int(value))
        if issubclass(kind, Rational):
            return {"q": [_bounded(int(value.numerator)), _bounded(int(value.denominator))]}
        if issubclass(kind, Real):
            return float(value)
        if hasattr(kind, "as_plain_data"):  # what stands for a module that is not installed
            return walk(value.as_plain_data(), depth)
        if hasattr(kind, "tolist"):  # tensors and arrays of other libraries, 0-d ones too
            return walk(value.tolist(), depth)
        if hasattr(kind, "__iter__") or hasattr(kind, "__getitem__"):
            return items(iter(value), depth)
        return {"x": kind.__name__[:60]}

    return walk(value, 0)


def _bounded(number: int) -> int:
    if number.bit_length() > MAX_BITS:
        raise OverflowError("the result holds a number beyond 2^1023")
    return number


def _decimal(value: Decimal) -> Any:
    if not Decimal.is_finite(value):
        return float(value)
    if value and (abs(Decimal.adjusted(value)) > MAX_EXPONENT or len(value.as_tuple().digits) > MAX_EXPONENT):
        raise OverflowError("the result holds a decimal number with too many digits")
    return {"D": str(Decimal(value)) if value else "0"}


def decode(tree: Any) -> Any:
    """Plain data from parsed JSON. Raises Malformed for anything that `encode` never writes."""
    left = MAX_VALUES

    def walk(node: Any, depth: int) -> Any:
        nonlocal left
        left -= 1
        if left < 0 or depth > MAX_DEPTH:
            raise Malformed("too much in one value")
        kind = type(node)
        if node is None or kind is bool or kind is float:
            return node
        if kind is int:
            return whole(node)
        if kind is str:
            return text(node)
        if kind is list:
            return [walk(item, depth + 1) for item in node]
        if kind is not dict or len(node) != 1:
            raise Malformed("an unknown value")
        ((tag, content),) = node.items()
        if tag == "x" and type(content) is str:
            return Foreign(identifier(content))
        if tag == "D" and type(content) is str:
            return decimal(content)
        if type(content) is not list:
            raise Malformed("an unknown value")
        if tag == "t":
            return tuple([walk(item, depth + 1) for item in content])
        if tag == "s":
            return [walk(item, depth + 1) for item in content]
        if tag == "d":
            return mapping(content, depth)
        if tag == "q" and len(content) == 2 and all(type(part) is int for part in content) and content[1] > 0:
            return Fraction(whole(content[0]), whole(content[1]))
        if tag == "c" and len(content) == 2 and all(type(part) is float for part in content):
            return complex(*content)
        raise Malformed("an unknown value")

    def mapping(pairs: list[Any], depth: int) -> dict[Any, Any]:
        if len(pairs) > MAX_PAIRS or any(type(pair) is not list or len(pair) != 2 for pair in pairs):
            raise Malformed("an unknown dict")
        try:
            return {walk(key, depth + 1): walk(item, depth + 1) for key, item in pairs}
        except TypeError as error:
            raise Malformed("a key that is not hashable") from error

    return walk(tree, 0)


def whole(number: int) -> int:
    if number.bit_length() > MAX_BITS:
        raise Malformed("a number that is too large")
    return number


def text(node: Any, length: int = MAX_TEXT + 1) -> str:
    """A string that any file and page can hold: bounded, without lone surrogates and control characters."""
    if type(node) is not str or len(node) > length:
        raise Malformed("a text that is too long")
    clean = node.encode("utf-8", "replace").decode()
    return "".join(sign if sign >= " " or sign in "\n\t" else "�" for sign in clean)


def identifier(node: Any) -> str:
    """A name as a program would write it; what is none becomes ``object``."""
    return node if type(node) is str and len(node) <= 60 and node.isascii() and node.isidentifier() else "object"


def decimal(content: str) -> Decimal:
    digits = content.lstrip("-").replace(".", "", 1)
    mantissa, _, exponent = digits.partition("E")
    if len(content) > MAX_EXPONENT + 20 or not mantissa.isascii() or not mantissa.isdigit():
        raise Malformed("an unknown decimal number")
    if exponent and not (exponent.isascii() and exponent.lstrip("+-").isdigit() and len(exponent) <= 5):
        raise Malformed("an unknown decimal number")
    value = Decimal(content)
    # Converting 1E+999999999 to a whole number would never end.
    if value and abs(value.adjusted()) > MAX_EXPONENT:
        raise Malformed("a decimal number that is too large or too small")
    return value if value else Decimal(0)


# Constructing these takes more than a message, or raising them means something to Python itself.
_UNFIT = (StopIteration, StopAsyncIteration, UnicodeError, BaseExceptionGroup)
BUILTIN_ERRORS: dict[str, type[Exception]] = {
    name: kind
    for name, kind in vars(sys.modules["builtins"]).items()
    if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, _UNFIT) and kind.__name__ == name
}


def encode_error(error: BaseException) -> dict[str, Any]:
    """An exception's type, its nearest built-in base, its text, and where it was raised: function, line, that line."""
    kind = type(error)
    base = next((parent.__name__ for parent in kind.__mro__ if BUILTIN_ERRORS.get(parent.__name__) is parent), "")
    try:
        message = str.__str__(str(error))[:500]
    except BaseException:
        message = ""
    function, line, source = "", 0, ""
    trace = error.__traceback__
    if kind is SyntaxError and type(error.lineno) is int and type(error.text) is str:
        function, line, source, trace = "", error.lineno, error.text.strip(), None
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename.startswith("<cell ") or not source:
            function, line, source = code.co_name, trace.tb_lineno, ""
            if code.co_filename.startswith("<cell "):
                source = linecache.getline(code.co_filename, line).strip()
        trace = trace.tb_next
    named = getattr(error, "function", None)
    return {
        "type": kind.__name__[:60],
        "base": base,
        "text": message,
        "function": (named if type(named) is str else function)[:60],
        "line": line,
        "source": source[:200],
    }


def decode_error(payload: Any) -> Exception:
    """An exception of the built-in type that the student's derives from, else a RuntimeError, under the student's name.

    Its attributes ``function``, ``line`` and ``source`` say where it was raised.
    """
    if type(payload) is not dict or set(payload) != {"type", "base", "text", "function", "line", "source"}:
        raise Malformed("an unknown error")
    name = identifier(payload["type"])
    base = BUILTIN_ERRORS.get(payload["base"] if type(payload["base"]) is str else "", RuntimeError)
    # KeyError quotes its text, and this one has been quoted already.
    quoted = {"__str__": lambda self: self.args[0]} if issubclass(base, KeyError) else {}
    kind = base if name == base.__name__ and not quoted else type(name, (base,), {"__module__": "builtins", **quoted})
    said = text(payload["text"])
    error = kind(said) if said or quoted else kind()  # the stub raises without a word, and checks know it by that
    error.function = identifier(payload["function"])
    line = payload["line"]
    error.line = line if type(line) is int and 0 < line < 10_000 else 0
    error.source = " ".join(text(payload["source"]).split())
    return error
