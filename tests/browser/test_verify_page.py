"""The page that verifies bundles, in Chromium: what is right is accepted, and what was changed is refused."""

import base64
import json
import shutil
from pathlib import Path

import pytest
from bundles import put
from sites import is_within
from tampering import GROUPS

import mechdesign as md
from mechdesign.certify import second_verifier

pytestmark = pytest.mark.browser
PAGE = "try/verify.html"
# Starting Python and proving 48 cells takes seconds, and on a busy machine more than a minute.
PATIENCE_MS = 240_000


@pytest.fixture(scope="module")
def city(tmp_path_factory):
    """The folder of a small bundle."""
    domain = md.Domain.grid(3, 2, 3.0, 2.0, unit="km")
    distance = md.distances.euclidean(domain)
    folder = tmp_path_factory.mktemp("made") / "city"
    requirements = [md.MetricPrivacy("1", distance), md.DistortionPrivacy("0.7", distance)]
    md.save(
        md.design(md.Problem(md.Prior.uniform(6), distance, requirements, secrets=domain, observables=domain)),
        folder,
        report=False,
    )
    return folder


@pytest.fixture(autouse=True)
def needs_pyodide(folder):
    if not (folder / "_static" / "verify" / "pyodide").is_dir():
        pytest.skip("the site was built without Pyodide, which npm fetches")


def verdict(page):
    page.wait_for_selector(".result[data-verdict]", timeout=PATIENCE_MS)
    assert page.locator(".run").is_hidden()
    return page.locator(".result").get_attribute("data-verdict"), page.locator(".result").inner_text()


def choose(page, folder):
    page.get_by_label("A folder").set_input_files(folder)
    return verdict(page)


def drop(page, *paths):
    """Drop files and folders of this machine onto the page, as a person does."""
    target = page.locator(".drop").bounding_box()
    where = {"x": target["x"] + 20, "y": target["y"] + 20}
    data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
    driver = page.context.new_cdp_session(page)
    for kind in ("dragEnter", "dragOver", "drop"):
        driver.send("Input.dispatchDragEvent", {"type": kind, "data": data, **where})
    return verdict(page)


def test_bundles_are_accepted_and_tampered_ones_refused_with_the_reason(opened, city, tmp_path):
    page = opened(PAGE)
    found, text = choose(page, city)
    assert found == "accepted"
    for claim in ("metric privacy", "ε at most 1; achieved: ", "distortion privacy", "relative gap", "is proved."):
        assert claim in text
    assert page.evaluate("document.activeElement.className") == "result"

    shutil.make_archive(str(tmp_path / "city"), "zip", city)
    page.get_by_label("Files or a zip archive").set_input_files(tmp_path / "city.zip")
    assert verdict(page)[0] == "accepted"
    page.get_by_label("Files or a zip archive").set_input_files(list(city.iterdir()))
    assert verdict(page)[0] == "accepted"
    assert drop(page, city)[0] == "accepted"
    assert drop(page, *city.iterdir())[0] == "accepted"

    # The first of each group of the table that the verifiers judge, too.
    for group, changes in GROUPS.items():
        tampered = tmp_path / group
        tampered.mkdir()
        found, text = drop(page, put(tampered, changes[0].files))
        assert found == "refused", group
        assert "achieved" not in text
    found, text = drop(page, city / "channel.npz")
    assert found == "undecided"
    assert "no certificate.json" in text
    assert len(page.workers) == 1


def test_the_example_is_stopped_by_keyboard_and_verified_again(opened):
    page = opened(PAGE)
    example = page.get_by_role("button", name="Verify the example")
    example.focus()
    page.keyboard.press("Enter")
    stop = page.get_by_role("button", name="Stop")
    stop.wait_for()
    page.locator(".said", has_text="Python").wait_for(state="attached", timeout=PATIENCE_MS)
    assert len(page.workers) == 1
    stop.focus()
    page.keyboard.press("Enter")
    assert verdict(page) == ("stopped", "Stopped. Nothing was decided.")
    # The browser tells of the end of a worker a moment later.
    for _ in range(100):
        if not page.workers:
            break
        page.wait_for_timeout(50)
    assert page.workers == []

    example.click()
    found, text = verdict(page)
    assert found == "accepted"
    assert "error of the best attack at least 1.5" in text
    page.get_by_role("button", name="Verify it with one bit flipped").click()
    page.wait_for_selector(".result[data-verdict=refused]", timeout=PATIENCE_MS)
    assert "channel.npz matches its digest" in page.locator(".result").inner_text()
    # The policy holds in the page and in the worker.
    worker = page.workers[0]
    for place in (page, worker):
        assert place.evaluate(REFUSED) == "TypeError"
    # Of the same host, files can be read.
    assert worker.evaluate("fetch(location.origin + '/index.html').then((answer) => answer.status)") == 200


# Requests that the policy blocks fail before they are sent, so that the fixture sees none.
REFUSED = "fetch('http://localhost:9/').then(() => 'sent', (error) => error.name)"


def test_the_verifier_of_the_site_is_the_package_s_own(folder):
    site = (folder / "_static" / "verify" / "second_verifier.py").read_bytes()
    assert site == Path(second_verifier.__file__).read_bytes()


def test_pyodide_is_what_the_site_pins(folder):
    pinned = json.loads((Path(__file__).parents[2] / "docs" / "_ext" / "pyodide.json").read_text(encoding="utf-8"))
    assert {path.name for path in (folder / "_static" / "verify" / "pyodide").iterdir()} == set(pinned["files"])
    assert len(base64.b64decode(pinned["integrity"].removeprefix("sha512-"))) == 64


def test_a_page_without_a_server_says_that_workers_need_one(opened, folder):
    page = opened((folder / PAGE).as_uri())
    assert "python -m http.server" in page.locator(".served").inner_text()
    assert page.locator(".tool").is_hidden()


def test_a_page_without_scripts_says_that_it_needs_them(opened):
    page = opened(PAGE, java_script_enabled=False)
    assert "needs JavaScript" in page.locator("#verifier").inner_text()
    assert page.locator(".tool").is_hidden()


def test_a_worker_that_cannot_be_loaded_is_said(opened):
    page = opened(PAGE)
    page.route("**/pyodide.mjs", lambda route: route.abort())
    page.get_by_role("button", name="Verify the example").click()
    found, text = verdict(page)
    assert found == "failed"
    assert "could not" in text


def test_a_request_to_another_host_would_be_found():
    site = "http://127.0.0.1:8000"
    for url in (f"{site}/index.html", "blob:http://127.0.0.1:8000/1", "data:,x", "file:///x"):
        assert is_within(url, site)
    for url in (
        "https://example.org/",
        "http://127.0.0.1:80000/",
        "http://127.0.0.1/",
        "http://localhost:8000/",
        "ws://x/",
    ):
        assert not is_within(url, site)
