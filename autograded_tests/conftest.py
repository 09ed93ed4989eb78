"""What several tests share: one browser, JupyterLab on a folder of their own, and Colab's environment."""

import os

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
def colab(tmp_path_factory):
    """Python of an environment with Colab's versions, one for all workers: nothing may be installed into it."""
    here = tmp_path_factory.getbasetemp()
    return colabs.environment((here.parent if "PYTEST_XDIST_WORKER" in os.environ else here) / "colab")
