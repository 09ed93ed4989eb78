"""An import that finds an optional module missing."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def absent(module: str) -> Iterator[None]:
    """Within the context, importing `module` raises ImportError, unless it has been imported before."""
    hidden = module not in sys.modules
    if hidden:
        sys.modules[module] = None  # type: ignore[assignment]  # so the import system marks what is not to be had
    try:
        yield
    finally:
        if hidden:
            sys.modules.pop(module, None)
