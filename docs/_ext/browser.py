"""The page that proves bundles in the browser, with ``{browser-verifier}``.

npm fetches Pyodide, in the version and with the digest of `pyodide.json`, into the user's cache. If npm cannot fetch
it, one line says so, the site is complete otherwise, and the page names the command that verifies bundles.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from platformdirs import user_cache_path
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

PINNED: Mapping[str, Any] = json.loads((Path(__file__).parent / "pyodide.json").read_text(encoding="utf-8"))
VERIFIER = Path(__file__).parents[2] / "mechdesign" / "certify" / "second_verifier.py"
EXAMPLE = Path(__file__).parents[1] / "_static" / "verify" / "city.toml"
NPM_SECONDS = 300
PAGE = "try/verify"
# The page may load files of its own site, and nothing else; browsers apply this to the worker, too, which is started
# from a blob. The scripts that the theme writes into the page are admitted by their digests.
POLICY = (
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval' {digests}; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; worker-src 'self' blob:; object-src 'none'; base-uri 'self'; form-action 'self'"
)


def find_pyodide(cached: Path, npm: str | None) -> Path | None:
    """Return the folder with the files of Pyodide, which `npm` fetches if they are not `cached`; None without npm.

    Raises:
        ExtensionError: The package has another digest.
    """
    folder = cached / f"pyodide-{PINNED['version']}"
    if not folder.is_dir() and npm is not None:
        with tempfile.TemporaryDirectory() as fetched:
            package = f"pyodide@{PINNED['version']}"
            asked = [npm, "pack", package, "--pack-destination", fetched, "--silent", "--fetch-retries", "1"]
            try:
                subprocess.run(asked, check=True, capture_output=True, timeout=NPM_SECONDS, cwd=fetched)
            except (OSError, subprocess.SubprocessError):
                return None
            unpack(next(Path(fetched).glob("*.tgz")), folder)
    return folder if folder.is_dir() else None


def unpack(package: Path, folder: Path, pinned: Mapping[str, Any] = PINNED) -> None:
    """Unpack the pinned files of a package from npm into a new folder.

    Raises:
        ExtensionError: The package has another digest, or lacks a file.
    """
    digest = base64.b64encode(hashlib.sha512(package.read_bytes()).digest()).decode()
    if f"sha512-{digest}" != pinned["integrity"]:
        raise ExtensionError(f"{package.name} has the digest sha512-{digest} instead of {pinned['integrity']}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as written, tarfile.open(package) as archive:
        made = Path(written) / "files"
        made.mkdir()
        for name in pinned["files"]:
            try:
                source = archive.extractfile(f"package/{name}")
            except KeyError:
                raise ExtensionError(f"{package.name} has no file {name}") from None
            assert source is not None
            (made / name).write_bytes(source.read())
        # If another build was faster, its files are the same.
        if not folder.is_dir():
            made.rename(folder)


@cache
def pyodide() -> Path | None:
    """Return the folder with Pyodide; if there is none, say so in one line."""
    found = find_pyodide(user_cache_path("mechdesign-site"), shutil.which("npm"))
    if found is None:
        reason = f"npm could not fetch pyodide {PINNED['version']}"
        print(f"verification in the browser is not part of this site: {reason}", file=sys.stderr)
    return found


_VERIFIER = """<div class="verifier" id="verifier">
<noscript><p>This page needs JavaScript.</p></noscript>
<p class="served" hidden>Browsers start a worker only from a server. Serve the folder of the site with
<code>python -m http.server</code>, and open this page from there.</p>
<div class="tool" hidden>
<div class="drop">
<p>Drop the folder of a bundle here, its files, or a zip archive with them.</p>
<p><label>Files or a zip archive <input type="file" multiple></label></p>
<p><label>A folder <input type="file" webkitdirectory></label></p>
</div>
<p>No bundle at hand? <button type="button" data-example="">Verify the example</button>
<button type="button" data-example="flip">Verify it with one bit flipped</button></p>
<div class="run" hidden><progress aria-label="Verification"></progress>
<span class="stage"></span> <span class="clock"></span> <button type="button" class="stop">Stop</button></div>
<p class="said" role="status"></p>
<section class="result" tabindex="-1" aria-label="Result"></section>
</div>
</div>"""

_WITHOUT = """**Verification in the browser is not part of this build**, because npm could not fetch Pyodide.
Run `mechdesign verify FOLDER` instead.
"""


class BrowserVerifier(SphinxDirective):
    """The page's tool, or a sentence that says why it is not part of this build."""

    def run(self) -> list[nodes.Node]:
        """Return it."""
        if pyodide() is None:
            return self.parse_text_to_nodes(_WITHOUT)
        return [nodes.raw("", _VERIFIER, format="html")]


def add_tool(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document) -> None:
    """Add script and style to the page of the tool."""
    if page == PAGE and pyodide() is not None:
        app.add_js_file("verify/verify.js", loading_method="defer")
        app.add_css_file("verify/verify.css")


def write_files(app: Sphinx, error: Exception | None) -> None:
    """Write the files of the tool, and the policy of its page."""
    if error is not None or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    shutil.copyfile(VERIFIER, static / "verify" / VERIFIER.name)
    if (found := pyodide()) is not None:
        shutil.copytree(found, static / "verify" / "pyodide", dirs_exist_ok=True)
        write_example(static / "verify" / "example")
    page = Path(app.outdir) / f"{PAGE}.html"
    if page.exists():
        page.write_text(with_policy(page.read_text(encoding="utf-8")), encoding="utf-8")


def write_example(folder: Path) -> None:
    """Design the example and write its bundle, unless there is one that is newer than its specification."""
    written = folder / "certificate.json"
    if written.exists() and written.stat().st_mtime >= EXAMPLE.stat().st_mtime:
        return
    import mechdesign as md

    specification = md.read_spec(EXAMPLE)
    md.save(md.design(specification.problem(), tolerance=specification.settings.tolerance), folder, report=False)


def with_policy(page: str) -> str:
    """Return a page that may load files of its own site alone, and run no scripts within the page but those it has."""
    inside = re.findall(r"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", page, flags=re.S)
    digests = sorted(
        {f"'sha256-{base64.b64encode(hashlib.sha256(each.encode()).digest()).decode()}'" for each in inside}
    )
    policy = POLICY.format(digests=" ".join(digests))
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    return re.sub(r"<head>", lambda found: f"{found[0]}{meta}", page, count=1)


def always_outdated(app: Sphinx, env: Any, added: set[str], changed: set[str], removed: set[str]) -> Sequence[str]:
    """Read the page again in each build, as Pyodide may have come or gone."""
    return [PAGE] if PAGE in env.found_docs else []


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive, and what is written after the pages."""
    app.add_directive("browser-verifier", BrowserVerifier)
    app.connect("env-get-outdated", always_outdated)
    app.connect("html-page-context", add_tool)
    app.connect("build-finished", write_files)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
