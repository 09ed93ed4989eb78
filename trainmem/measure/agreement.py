"""A list of tensors against a measurement: every tensor by its name and bytes, and nothing left over."""

from trainmem.measure.saved import SavedTensors
from trainmem.memory import Block


def disagreements(block: Block, saved: SavedTensors) -> list[str]:
    """What is wrong between ``block.everything`` and what autograd saved: one line a tensor, none where they agree.

    A tensor agrees when exactly the places of its ``needed_by`` hold one storage of exactly its bytes.
    """
    found: dict[frozenset[str], list[int]] = {}
    for storage in saved.storages:
        found.setdefault(frozenset(storage.places), []).append(storage.nbytes)
    lines = []
    for tensor in block.everything:
        sizes = found.get(frozenset(tensor.needed_by), [])
        if tensor.nbytes in sizes:
            sizes.remove(tensor.nbytes)
        else:
            instead = f"{sizes.pop(0)} saved" if sizes else "nothing saved there"
            lines.append(f"{tensor.name} ({', '.join(tensor.needed_by)}): {tensor.nbytes} bytes listed, {instead}")
    for places, sizes in found.items():
        lines += [f"{', '.join(sorted(places))}: {size} bytes saved, not listed" for size in sizes]
    return lines
