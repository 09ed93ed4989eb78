"""What several tests share: one browser, and JupyterLab on a folder of their own."""

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
def lab_folder(tmp_path_factory):
    """The folder that JupyterLab shows: tests put their notebooks into it."""
    return tmp_path_factory.mktemp("lab")


@pytest.fixture(scope="session")
def lab(lab_folder, tmp_path_factory):
    with jupyterlab(lab_folder, tmp_path_factory.mktemp("jupyter")) as address:
        yield address
