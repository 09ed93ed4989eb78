"""The course's secret, from which what hidden checks draw is seeded."""

import os
import secrets
from pathlib import Path


def private_salt(beside: Path) -> bytes:
    """Return the course's secret from the file beside its gradebook, which is made at the first call, readable by its
    owner only.

    Raises ValueError where the file is there and holds no such secret.
    """
    path = beside.with_name(beside.name + ".salt")
    if not path.exists():
        partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w") as file:
            file.write(secrets.token_hex(32) + "\n")
        try:
            os.link(partial, path)  # of two that make it at once, the first stays
        except FileExistsError:
            pass
        finally:
            partial.unlink()
    try:
        salt = bytes.fromhex(path.read_text().strip())
    except ValueError:
        salt = b""
    if len(salt) < 16:
        raise ValueError(f"{path} holds no salt: delete it, and grade everything again")
    path.chmod(0o600)
    return salt
