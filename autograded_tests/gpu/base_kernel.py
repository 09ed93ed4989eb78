"""A kernel that sees the course's wheel, what the wheel needs, torch, and nothing else: what a person in Colab has."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

from autograded_tests.notebooks import ROOT

#: What the wheel asks for, a kernel to run it in, and torch.
VISIBLE = ("numpy", "matplotlib", "ipywidgets", "ipykernel", "torch")


def build_wheel(folder: Path) -> Path:
    """The wheel, built from a copy, so that nothing is left in the repository."""
    source = folder / "source"
    for package in ("trainmem", "trainmem_solutions"):
        shutil.copytree(ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, source]
    subprocess.run(command, check=True, capture_output=True)
    return next(folder.glob("trainmem-*.whl"))


def needed(names: tuple[str, ...]) -> set[str]:
    """The distributions installed here that these need, themselves included."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        try:
            requirements = distribution(name).requires or []
        except PackageNotFoundError:  # a requirement of another platform or an optional one
            continue
        if name not in found:
            found.add(name)
            parsed = map(Requirement, requirements)
            waiting += [x.name for x in parsed if x.marker is None or x.marker.evaluate({"extra": ""})]
    return found


def site_folder(folder: Path, wheel: Path) -> Path:
    """A folder of packages: the wheel unpacked, and links to what it needs."""
    site = folder / "site"
    shutil.unpack_archive(wheel, site, "zip")
    for name in needed(VISIBLE):
        files = distribution(name).files or []
        tops = {Path(file.parts[0]) for file in files if file.parts[0] not in ("..", "__pycache__")}
        for top in tops:
            there = Path(distribution(name).locate_file(top))
            if there.exists() and not (site / top).exists():
                (site / top).symlink_to(there.resolve())
    return site


def install_kernel(folder: Path) -> dict[str, str]:
    """Makes the kernel "base" in ``folder``; the environment in which nbclient and nbval find it."""
    site = site_folder(folder, build_wheel(folder))
    spec = folder / "jupyter" / "kernels" / "base" / "kernel.json"
    spec.parent.mkdir(parents=True)
    # -S: this interpreter's own packages stay out of sight.
    spec.write_text(
        json.dumps(
            {
                "argv": [sys.executable, "-S", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
                "display_name": "base",
                "env": {
                    "PYTHONPATH": str(site),
                    "CUDA_VISIBLE_DEVICES": "",
                    "MPLCONFIGDIR": str(folder / "matplotlib"),
                },
            }
        )
    )
    return os.environ | {"JUPYTER_PATH": str(folder / "jupyter")}
