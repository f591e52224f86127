"""The page of the web tutorial answers, and refuses a damaged channel, in Chromium: from a file and from a server."""

import functools
import http.server
import shutil
import subprocess
import threading
from pathlib import Path

import pytest
from pages import blocks

import mechdesign as md
from mechdesign.synthesis.formats._format import Exported
from mechdesign.synthesis.formats._registry import FORMATS

TUTORIAL = Path(__file__).parents[2] / "docs/tutorials/web_app.md"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium on the path"),
]


def pressed(page, times):
    """Return the page with a script that presses the button when the channel is verified, and counts the draws."""
    script = f"""
const wait = setInterval(() => {{
  if (share.disabled) return;
  clearInterval(wait);
  for (let i = 0; i < {times}; i++) share.click();
  shown.append(` of ${{Object.keys(JSON.parse(localStorage.getItem(about.digest))).length}}`);
}}, 10);
"""
    return page.replace("</html>", f"<script>{script}</script></html>")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    files = {block.caption: block.text for block in blocks(TUTORIAL) if block.caption}
    (folder / "city.toml").write_text(files["city.toml"], encoding="utf-8")
    design = md.design(md.read_spec(folder / "city.toml").problem())
    exported = Exported(design.problem, design.channel, design.certificate)
    FORMATS["js"].write(exported, folder / "channel.js", {"classic": True})
    page = files["index.html"]
    (folder / "index.html").write_text(page, encoding="utf-8")
    (folder / "pressed.html").write_text(pressed(page, 1), "utf-8")
    script = (folder / "channel.js").read_text(encoding="utf-8")
    at = script.index('\\"numerators\\":\\"') + 40
    other = "A" if script[at] != "A" else "B"
    (folder / "damaged.js").write_text(script[:at] + other + script[at + 1 :], "utf-8")
    (folder / "damaged.html").write_text(page.replace('src="channel.js"', 'src="damaged.js"'), "utf-8")
    return folder


def shown(address):
    """Return what the element `output` of a page shows, and the number of dots on its map."""
    arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--dump-dom", address]
    printed = subprocess.run([BROWSER, *arguments], capture_output=True, text=True, check=True, timeout=120).stdout
    output = printed.split("<output", 1)[1].split(">", 1)[1].split("</output>")[0]
    return output, printed.split("<svg", 1)[1].split("</svg>")[0].count("<circle")


def test_from_a_file(site):
    assert shown((site / "index.html").as_uri()) == (
        "Verified: metric privacy, ε per km (great-circle distance), ε = 1",
        0,
    )
    text, dots = shown((site / "pressed.html").as_uri())
    assert text.startswith("Sent: 45.7")
    assert dots == 2


def test_between_anchors_answers_are_kept_by_name(site):
    files = {block.caption: block.text for block in blocks(TUTORIAL) if block.caption}
    line, field = (
        next(block.text.strip() for block in blocks(TUTORIAL) if not block.caption and said in block.text)
        for said in ('element("name").value', "Name of the place")
    )
    # Coarser anchors, to be designed quickly.
    coarse = files["anchors.toml"].replace("columns = 17", "columns = 9").replace("rows = 13", "rows = 7")
    (site / "anchors.toml").write_text(coarse, encoding="utf-8")
    design = md.design(md.read_spec(site / "anchors.toml").problem())
    exported = Exported(design.problem, design.channel, design.certificate)
    FORMATS["js"].write(exported, site / "coordinates.js", {"classic": True})
    page = files["index.html"].replace("const cell = cellOf(place);", line)
    page = page.replace('<button id="share">', f'{field}\n<button id="share">')
    assert line in page
    assert field in page
    page = page.replace('src="channel.js"', 'src="coordinates.js"')
    kept = "Object.keys(JSON.parse(localStorage.getItem(about.digest))).length"
    presses = f"share.click(); share.click(); shown.append(` of ${{{kept}}}`)"
    (site / "coordinates.html").write_text(page.replace("</html>", f"<script>{presses}</script></html>"), "utf-8")
    text, dots = shown((site / "coordinates.html").as_uri())
    assert text.startswith("Sent: 45.7")
    assert text.endswith("of 1")
    assert dots == 2


def test_a_damaged_channel_is_refused(site):
    text, _ = shown((site / "damaged.html").as_uri())
    assert text == "Refused: the module was changed: its digest does not match its data"


def test_from_a_server(site):
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        text, dots = shown(f"http://127.0.0.1:{server.server_port}/pressed.html")
        server.shutdown()
    assert text.startswith("Sent: 45.7")
    assert dots == 2
