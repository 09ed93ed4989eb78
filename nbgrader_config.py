"""The course for nbgrader: `nbgrader generate_assignment training_memory` and its other commands run in this folder."""

import os
import sys
from pathlib import Path

# nbgrader starts its database tool by name: it must be found also where the environment is not activated.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])

c = get_config()

c.CourseDirectory.course_id = "trainmem"
c.CourseDirectory.root = str(Path(__file__).resolve().parent) if "__file__" in globals() else str(Path.cwd())

# The stub must be one line that raises: the checks say "not written yet" where it does.
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError()"}

# release/ is committed, so that nbgrader would skip its generation and then know no assignment to grade.
c.GenerateAssignment.force = True

# Students' code is graded in a sandbox. TRAINMEM_GRADING=nbgrader leaves the course to nbgrader alone, which runs that
# code with the rights of whoever grades: for submissions of your own only.
if os.environ.get("TRAINMEM_GRADING") != "nbgrader":
    # Whoever reads this file and has not got the classes that it installs stops here, before anything is run.
    c.Autograde.sanitize_preprocessors = ["trainmem.grading.nbgrader_course.NeverStock"]
    c.ExportApp.plugin_class = "trainmem.grading.export.QuotedExport"
    if "nbgrader" in sys.modules:  # whoever reads this file without nbgrader need not wait for it
        try:
            from trainmem.grading.nbgrader_course import install

            install()
        except Exception as error:  # any: nbgrader would go on without this file
            print(f"nbgrader_config.py: grading stays switched off: {error}", file=sys.stderr)
    # Where students' code runs: "bubblewrap" (Linux), or "none" on a machine that was made for one submission only.
    c.Autograde.sandbox = "bubblewrap"
