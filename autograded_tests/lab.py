"""JupyterLab in a headless Chromium: open a notebook, run all its cells, look at what a person would see."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, TimeoutError, sync_playwright

CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SETTINGS = {
    # Every cell stands in the page, also those out of sight, and nobody asks about news.
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}


@contextmanager
def chromium() -> Browser:
    """Debian's Chromium, headless, on a clean profile."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=CHROMIUM_FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def jupyterlab(folder: Path, scratch: Path, environment: dict[str, str] | None = None) -> str:
    """JupyterLab on `folder`; settings, workspaces and runtime files go into `scratch`. Yields its address."""
    settings = scratch / "settings"
    for name, values in SETTINGS.items():
        place = settings / f"{name}.jupyterlab-settings"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(values))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = os.environ | {
        "JUPYTERLAB_SETTINGS_DIR": str(settings),
        "JUPYTERLAB_WORKSPACES_DIR": str(scratch / "workspaces"),
        "JUPYTER_RUNTIME_DIR": str(scratch / "runtime"),
        "JUPYTER_CONFIG_DIR": str(scratch / "config"),
        "IPYTHONDIR": str(scratch / "ipython"),
        **(environment or {}),
    }
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", f"--port={port}", "--allow-root"]
    command += ["--ServerApp.port_retries=0", "--IdentityProvider.token=", f"--ServerApp.root_dir={folder}"]
    with (scratch / "jupyterlab.log").open("w") as log:
        server = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_until_up(address, server, scratch / "jupyterlab.log")
        yield address
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait_until_up(address: str, server: subprocess.Popen, log: Path) -> None:
    for _ in range(600):
        if server.poll() is not None:
            raise RuntimeError(f"JupyterLab ended with {server.returncode}:\n{log.read_text()[-3000:]}")
        try:
            urllib.request.urlopen(f"{address}/api/status", timeout=2).read()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not come up:\n{log.read_text()[-3000:]}")


def open_notebook(page: Page, address: str, notebook: str) -> None:
    """Open a notebook and wait until its kernel is connected and idle."""
    heard = []  # frames of the kernel's channel: a run that is asked for before the first one is lost
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: heard.append(len(frame))))
    page.goto(f"{address}/lab/tree/{notebook}?reset")
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
    page.wait_for_selector(
        ".jp-NotebookPanel-toolbar .jp-Notebook-ExecutionIndicator[data-status=idle]", timeout=60_000
    )
    for _ in range(1200):
        if heard:
            return
        page.wait_for_timeout(50)
    raise RuntimeError(f"{notebook}: no word from the kernel within a minute")


def run_all(page: Page, timeout_s: float = 240) -> None:
    """Run all cells and wait until every code cell has its count (folded ones show none)."""
    # On a busy machine a run that is asked for while the session is still being connected is lost, or all of it but its
    # first cell: ask again, as a person would who sees that nothing goes on.
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        before = page.evaluate(PROMPTS)
        page.click("text=Run >> nth=0")
        page.click("text=Run All Cells >> nth=0")
        _within(page, 20, f"() => {PROMPTS}.join() !== {json.dumps(','.join(before))}")
        _within(page, end - time.monotonic(), f"() => !{PROMPTS}.some(text => text.startsWith('[*]'))")
        if _within(page, 5, f"() => {PROMPTS}.every(text => /^\\[\\d+\\]:?$/.test(text))"):
            _within(page, 20, IDLE)  # folded cells may come last
            return
    kernel = page.get_attribute(".jp-Notebook-ExecutionIndicator", "data-status")
    raise RuntimeError(f"not all cells have run: {page.evaluate(PROMPTS)}, the kernel is {kernel}")


def choose_theme(page: Page, theme: str) -> None:
    """JupyterLab's own theme, "light" or "dark", by its menu."""
    page.click(".lm-MenuBar-itemLabel:text-is('Settings')")
    page.hover(".lm-Menu-itemLabel:text-is('Theme')")
    page.click(f".lm-Menu-itemLabel:text-is('JupyterLab {theme.capitalize()}')")
    page.wait_for_selector(f"body[data-jp-theme-light={'true' if theme == 'light' else 'false'}]", state="attached")
    page.wait_for_timeout(1000)  # its colours fade in


# What stands before the code cells that are not folded: "[ ]:", "[*]:" or a count.
PROMPTS = """[...document.querySelectorAll('.jp-Notebook .jp-CodeCell .jp-InputPrompt')]
    .map(prompt => prompt.textContent.trim()).filter(text => text)"""


IDLE = "() => document.querySelector('.jp-Notebook-ExecutionIndicator')?.dataset.status === 'idle'"


def _within(page: Page, seconds: float, condition: str) -> bool:
    """Whether a condition of the page came true in that time."""
    try:
        page.wait_for_function(condition, timeout=max(1.0, 1000 * seconds))
    except TimeoutError:
        return False
    return True
