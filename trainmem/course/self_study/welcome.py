"""The cells below the title: what this edition is, and the package for the figures at its end."""

# %% [markdown]
# ## This edition
#
# You are on your own here, and nothing is handed in. The checks stand folded, since they give away what they ask; run them
# as they are. They ask all their cases at once, also those that a student never sees, and one that passes says nothing.
# Below them two more things are
# folded: **the answer, with the reasoning** that leads to it, and **what people get wrong**. Open these when your check
# passes, or when you have been stuck for ten minutes. After the five exercises come three stretch exercises; and
# [at the end](#Your-functions-in-the-figures) the figures of the
# [lesson](lesson.ipynb) are drawn by the functions that you wrote.
#
# The exercises need Python and nothing else. The figures need the course's package, `trainmem`. The next cell looks for
# it, and where it is missing (in Colab this notebook arrives alone) installs it with pip. Where that cannot be done, it
# says so, and you go on without the figures.

# %% setup
# The package for the figures at the end: looked for, and installed where that can be done.
ARCHIVE = "{{archive}}"

try:
    from trainmem import figures
except ImportError:  # nothing but the course itself is installed
    import subprocess
    import sys

    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--no-deps", ARCHIVE])
    try:
        from trainmem import figures
    except ImportError as missing:
        print(f"{missing}. The exercises work all the same; only the figures at the end need: pip install {ARCHIVE}")
