"""The site, made once and served on this machine alone; and axe-core for its pages."""

import http.server
import shutil
import subprocess
import threading
from functools import partial
from pathlib import Path

import pytest

from trainmem.site.build import build


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    build(folder)
    return folder


@pytest.fixture(scope="session")
def address(folder):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="session")
def axe_script(tmp_path_factory):
    """axe-core from npm, at the version of the tests' package.json."""
    folder = tmp_path_factory.mktemp("npm")
    [wanted] = Path(__file__).parents[1].rglob("package.json")
    shutil.copy(wanted, folder)
    command = ["npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
    subprocess.run(command, check=True, timeout=120)
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")
