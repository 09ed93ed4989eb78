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
