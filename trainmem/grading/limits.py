"""What one submission may use."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds on one submission. Honest ones end in a twentieth of a second and never meet them.

    Time. A cell may take `cell_seconds`, a call `call_seconds`. What a cell or function has used is counted over all
    its runs and calls, and it never gets more than twice that; after it has hung once it gets a quarter, and after two
    hangs, or once the submission has spent `patience_seconds` on waiting, `least_seconds` each time. A cell that hung
    twice is not run again. Running the cells again after a sandbox was lost comes out of `patience_seconds` too. Where
    right functions are bound, counting begins anew for each function: the hang may have been an earlier one's.
    Whatever happens, `total_seconds` after it began a submission is over (its last sandbox takes a moment to end); the
    checks that are then still open are lost, all others keep their result.

    Space. `memory_bytes` bounds the addresses of each process, `resident_bytes` the memory that all of them hold
    together (looked at ten times a second), `scratch_bytes` the scratch folder and each file in it.
    """

    cell_seconds: float = 10.0
    call_seconds: float = 5.0
    patience_seconds: float = 20.0
    least_seconds: float = 1.0
    total_seconds: float = 60.0
    memory_bytes: int = 4 << 30
    resident_bytes: int = 2 << 30
    scratch_bytes: int = 64 << 20
    processes: int = 32
    open_files: int = 128

    def inside(self) -> dict[str, int]:
        """Those that the kernel holds a submission's processes to."""
        names = ("memory_bytes", "resident_bytes", "scratch_bytes", "processes", "open_files")
        every = asdict(self)
        return {name: every[name] for name in names} | {"cpu_seconds": int(self.total_seconds) + 1}
