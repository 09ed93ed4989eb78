"""What several tests share: one browser, axe for it, and JupyterLab on a folder of their own."""

import shutil
import subprocess
from pathlib import Path

import pytest

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
def axe(tmp_path_factory):
    """axe-core from npm, at the version of package.json."""
    folder = tmp_path_factory.mktemp("npm")
    shutil.copy(Path(__file__).with_name("figures") / "package.json", folder)
    command = ["npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
    subprocess.run(command, check=True, timeout=120)
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")


@pytest.fixture(scope="session")
def lab_folder(tmp_path_factory):
    """The folder that JupyterLab shows: tests put their notebooks into it."""
    return tmp_path_factory.mktemp("lab")


@pytest.fixture(scope="session")
def lab(lab_folder, tmp_path_factory):
    with jupyterlab(lab_folder, tmp_path_factory.mktemp("jupyter")) as address:
        yield address
