"""A served copy of the site, and Chromium to look at it with; each test also asserts that no request left the site."""

import functools
import os
import shutil
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from sites import is_within

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SITE = Path(os.environ.get("MECHDESIGN_SITE", Path(__file__).parents[2] / "build" / "site"))


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="session")
def folder():
    if not (SITE / "index.html").is_file():
        pytest.skip(f"no site in {SITE}: build it by nox -s docs, or set MECHDESIGN_SITE")
    return SITE


@pytest.fixture(scope="session")
def site(folder):
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="session")
def chromium():
    sync_api = pytest.importorskip("playwright.sync_api", reason="the extra weekly is not installed")
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        pytest.skip(f"none of {', '.join(PROGRAMS)} is installed")
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium, site):
    """Return a function that opens a page of the site; requests to other hosts and errors of scripts fail the test."""
    asked, errors, contexts = [], [], []

    def opened(path, **options):
        context = chromium.new_context(**options)
        contexts.append(context)
        context.on("request", lambda request: asked.append(request.url))
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(path if ":" in path else f"{site}/{path}")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert asked
    assert errors == []
    assert [url for url in asked if not is_within(url, site)] == []
