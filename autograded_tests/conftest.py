"""What several tests share: one browser, JupyterLab on a folder of their own, axe-core, and Colab's environment."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from autograded_tests import colab as colabs
from autograded_tests.lab import chromium, jupyterlab


@pytest.fixture(scope="session")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture
def page(browser):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    yield page
    page.close()


@pytest.fixture(scope="session")
def lab_folder(tmp_path_factory):
    """The folder that JupyterLab shows: tests put their notebooks into it."""
    return tmp_path_factory.mktemp("lab")


@pytest.fixture(scope="session")
def lab(lab_folder, tmp_path_factory):
    with jupyterlab(lab_folder, tmp_path_factory.mktemp("jupyter")) as address:
        yield address


@pytest.fixture(scope="session")
def axe_script(tmp_path_factory):
    """axe-core from npm, at the version of package.json."""
    folder = tmp_path_factory.mktemp("npm")
    shutil.copy(Path(__file__).with_name("package.json"), folder)
    command = ["npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
    subprocess.run(command, check=True, timeout=120)
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")


@pytest.fixture(scope="session")
def axe(axe_script):
    """(page, selector) → the serious and critical findings of axe-core."""

    def findings(page, selector):
        # What is scrolled out of sight axe passes over, and all of JupyterLab's page, whose body is 0 pixels high and
        # hides what runs over. So each part is brought into sight; the cells without one are left out, to be quick.
        rules = f"body {{ height: 100vh }} .jp-Cell:not(:has({selector})) {{ display: none }}"
        shown = page.add_style_tag(content=rules)
        page.evaluate(axe_script)
        found = []
        try:
            for part in page.locator(selector).all():
                part.evaluate("part => part.scrollIntoView({block: 'center'})")
                result = part.evaluate("part => axe.run(part)")
                looked_at = {finding["id"] for kind in ("passes", "violations") for finding in result[kind]}
                assert "color-contrast" in looked_at, part.inner_text()
                found += [
                    (finding["id"], node["html"][:160])
                    for finding in result["violations"]
                    if finding["impact"] in ("serious", "critical")
                    for node in finding["nodes"]
                ]
        finally:
            shown.evaluate("style => style.remove()")
        return found

    return findings


@pytest.fixture(scope="session")
def colab(tmp_path_factory):
    """Python of an environment with Colab's versions, one for all workers: nothing may be installed into it."""
    here = tmp_path_factory.getbasetemp()
    return colabs.environment((here.parent if "PYTEST_XDIST_WORKER" in os.environ else here) / "colab")
