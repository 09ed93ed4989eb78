# Each target is one plain command; `make grade` and `make test` set up what they need.
PYTHON = .venv/bin/python
SUBMITTED =
OUT = $(if $(SUBMITTED),graded,sample)

.PHONY: grade lab test test-long build bench check site system

# Grade the sample class, or a real one: make grade SUBMITTED=folder OUT=folder
grade: .venv/grade
	$(if $(SUBMITTED),,$(PYTHON) -m autograded_tests.sample_class $(OUT)/submitted)
	$(PYTHON) -m trainmem.grading $(or $(SUBMITTED),$(OUT)/submitted) $(OUT)

lab: .venv/grade
	$(PYTHON) -m jupyterlab notebooks/lesson.ipynb

test: .venv/test check
	$(PYTHON) -m pytest -n 2 --dist loadfile -m "not long"

test-long: .venv/test check
	$(PYTHON) -m pytest -n 2 --dist loadfile

check: .venv/test
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m trainmem.course.build --check

# With torch: the lesson is executed by its build.
build: .venv/test
	$(PYTHON) -m trainmem.course.build

site: .venv/site
	$(PYTHON) -m trainmem.site site

bench: .venv/test
	for benchmark in benchmarks/*.py; do $(PYTHON) $$benchmark || exit 1; done

# Debian's packages: the sandbox in which submissions run, the browser in which the figures are tested, and the package
# manager that fetches axe. Only what is missing: a Node.js of another origin conflicts with Debian's npm.
system:
	missing=$$(for pair in bwrap:bubblewrap chromium:chromium npm:npm; do \
		command -v $${pair%%:*} >/dev/null || echo $${pair##*:}; done); \
	test -z "$$missing" || (apt-get update && apt-get install -y $$missing)

.venv/%: pyproject.toml
	test -x $(PYTHON) || python3 -m venv .venv
	$(PYTHON) -m pip install --quiet --editable ".[lab,$*]"
	touch $@
