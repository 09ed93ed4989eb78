"""What a results file holds: its kind, its version and its fields, checked as it is read. Needs no torch."""

import json
from pathlib import Path
from typing import Any

#: What a file says that it is, and the version of its layout that is read here.
KIND, VERSION = "trainmem checkpointing", 1

#: The fields of a run, and their types in JSON.
REQUIRED = {"device": dict, "versions": dict, "started": str, "shapes": dict, "cases": list}

_OF_A_DEVICE = {"name": str, "kind": str}
_OF_A_CASE = {"s": int, "setting": str, "predicted_bytes": int, "outcome": str}


class ResultsError(ValueError):
    """A file of results that cannot be read, with what is wrong and what to do."""


def read(path: Path) -> dict[str, Any]:
    """The fields of one file (amounts in bytes, times in seconds), each of its type.

    Raises `ResultsError` for one that is damaged, of another kind or of another version; the file stays as it is.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path.name} cannot be read ({error}); it is left as it is") from error
    if not isinstance(found, dict) or found.get("kind") != KIND:
        raise ResultsError(f"{path.name} holds no results of this experiment; it is left as it is")
    if found.get("version") != VERSION:
        raise ResultsError(
            f"{path.name} has layout {found.get('version')!r}, and this trainmem reads layout {VERSION}; it is left as "
            "it is: draw it with the trainmem that wrote it, or run the notebook again"
        )
    wrong = _lacking(found, REQUIRED)
    if not wrong:
        wrong = [f"device.{name}" for name in _lacking(found["device"], _OF_A_DEVICE)]
        wrong += [f"cases[{i}]" for i, case in enumerate(found["cases"]) if not _is_case(case)]
    if wrong:
        raise ResultsError(f"{path.name} lacks {', '.join(wrong)}; it is left as it is")
    return {name: found[name] for name in REQUIRED}


def _lacking(found: dict[str, Any], fields: dict[str, type]) -> list[str]:
    return [name for name, kind in fields.items() if not isinstance(found.get(name), kind)]


def _is_case(case: Any) -> bool:
    if not isinstance(case, dict) or _lacking(case, _OF_A_CASE):
        return False
    numbers = ("measured_bytes", "forward_seconds", "backward_seconds")
    return case["outcome"] != "measured" or all(isinstance(case.get(name), int | float) for name in numbers)
