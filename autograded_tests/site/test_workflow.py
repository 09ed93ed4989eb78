"""The workflow file: it can be read, what it runs is there, and it publishes from main alone."""

import re

import pytest
import yaml

from autograded_tests.notebooks import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
COURSE = yaml.safe_load((ROOT / ".github" / "workflows" / "course.yml").read_text("utf-8"))
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def runs(job):
    return [step["run"] for step in COURSE["jobs"][job]["steps"] if "run" in step]


def uses(job):
    return [step["uses"].split("@")[0] for step in COURSE["jobs"][job]["steps"] if "uses" in step]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_target_that_is_named_is_there(path):
    made = re.findall(r"\bmake ([\w-]+)", path.read_text("utf-8"))
    assert made
    assert set(made) <= TARGETS


def test_the_tests_run_as_on_a_clean_machine():
    ours = re.findall(r"\bmake ([\w-]+)", (ROOT / ".ci" / "run").read_text("utf-8"))
    theirs = re.findall(r"\bmake ([\w-]+)", "\n".join(runs("test")))
    assert theirs == ours == ["system", "test"]
    assert set(COURSE[True]) >= {"push", "pull_request"}  # YAML 1.1 reads the key `on` as true


def test_the_site_is_published_from_main_after_the_tests():
    site = COURSE["jobs"]["site"]
    assert site["needs"] == "test"
    assert "refs/heads/main" in site["if"]
    assert runs("site") == ["make site"]
    assert uses("site")[-2:] == ["actions/upload-pages-artifact", "actions/deploy-pages"]
    assert site["permissions"] == {"contents": "read", "pages": "write", "id-token": "write"}
    assert COURSE["permissions"] == {"contents": "read"}
    [upload] = [step for step in site["steps"] if "upload-pages" in step.get("uses", "")]
    assert f"trainmem.site {upload['with']['path']}\n" in (ROOT / "Makefile").read_text("utf-8")


def test_only_runs_of_a_pull_request_are_cancelled():
    assert COURSE["concurrency"]["cancel-in-progress"] == "${{ github.event_name == 'pull_request' }}"
    assert all("concurrency" not in job for job in COURSE["jobs"].values())
