"""The extension of the site that fetches Pyodide and writes the policy of the page that verifies."""

import base64
import hashlib
import io
import os
import re
import stat
import subprocess
import sys
import tarfile
from pathlib import Path

import matplotlib
import pytest

EXTENSIONS = Path(__file__).parents[2] / "docs" / "_ext"
pytest.importorskip("sphinx", reason="the extra docs is not installed")


@pytest.fixture(scope="module")
def browser():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXTENSIONS))
        import browser

        yield browser


def package(folder, names, root="package"):
    """Write an archive like npm's and return it with what pins it."""
    path = folder / "some-1.0.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            info = tarfile.TarInfo(f"{root}/{name}")
            info.size = len(name)
            archive.addfile(info, io.BytesIO(name.encode()))
    digest = base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()
    return path, {"integrity": f"sha512-{digest}", "files": ["a", "b"]}


def program(folder, text):
    made = folder / "npm"
    made.write_text(f"#!{sys.executable}\n{text}\n")
    made.chmod(made.stat().st_mode | stat.S_IXUSR)
    return str(made)


def test_the_pinned_files_are_unpacked_and_no_others(browser, tmp_path):
    archive, pinned = package(tmp_path, ["a", "b", "c"])
    browser.unpack(archive, tmp_path / "cache" / "made", pinned)
    assert {path.name: path.read_text() for path in (tmp_path / "cache" / "made").iterdir()} == {"a": "a", "b": "b"}
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["made"]
    # Another build may have been faster.
    browser.unpack(archive, tmp_path / "cache" / "made", pinned)


def test_a_package_with_another_digest_fails_the_build_and_leaves_nothing(browser, tmp_path):
    archive, pinned = package(tmp_path, ["a", "b"])
    content = bytearray(archive.read_bytes())
    content[-1] ^= 1
    archive.write_bytes(content)
    with pytest.raises(browser.ExtensionError, match="has the digest sha512-"):
        browser.unpack(archive, tmp_path / "cache" / "made", pinned)
    assert not (tmp_path / "cache").exists()


def test_a_package_without_a_file_fails_the_build_and_leaves_nothing(browser, tmp_path):
    for names, root in (([], "package"), (["a"], "package"), (["a", "b"], "other")):
        archive, pinned = package(tmp_path, names, root)
        with pytest.raises(browser.ExtensionError, match="has no file"):
            browser.unpack(archive, tmp_path / "cache" / "made", pinned)
        assert list((tmp_path / "cache").iterdir()) == [], names


def test_without_an_npm_that_ends_well_there_is_no_pyodide(browser, tmp_path, monkeypatch):
    assert browser.find_pyodide(tmp_path, None) is None
    assert browser.find_pyodide(tmp_path, str(tmp_path / "missing")) is None
    assert browser.find_pyodide(tmp_path, program(tmp_path, "raise SystemExit(1)")) is None
    monkeypatch.setattr(browser, "NPM_SECONDS", 0.2)
    assert browser.find_pyodide(tmp_path, program(tmp_path, "import time; time.sleep(60)")) is None


def test_what_is_cached_needs_no_npm(browser, tmp_path):
    folder = tmp_path / f"pyodide-{browser.PINNED['version']}"
    folder.mkdir()
    assert browser.find_pyodide(tmp_path, None) == folder
    assert browser.find_pyodide(tmp_path, program(tmp_path, "raise SystemExit(1)")) == folder


def test_what_npm_fetches_is_compared_with_the_pinned_digest(browser, tmp_path):
    wrong = "import sys; open(sys.argv[sys.argv.index('--pack-destination') + 1] + '/p.tgz', 'wb')"
    with pytest.raises(browser.ExtensionError, match="instead of sha512-"):
        browser.find_pyodide(tmp_path, program(tmp_path, wrong))
    assert len(base64.b64decode(browser.PINNED["integrity"].removeprefix("sha512-"))) == 64


def test_the_policy_admits_the_scripts_in_the_page_and_its_own_files(browser):
    page = '<html><head><title>x</title></head><script src="a.js"></script><script>let a = 1</script></html>'
    found = browser.with_policy(page)
    digest = base64.b64encode(hashlib.sha256(b"let a = 1").digest()).decode()
    assert found.startswith('<html><head><meta http-equiv="Content-Security-Policy" content="default-src \'self\';')
    assert found.count("sha256-") == 1
    assert f"'sha256-{digest}'" in found
    assert "http:" not in found
    assert "https:" not in found
    assert "unsafe-eval" not in found.replace("wasm-unsafe-eval", "")


BUILD = """
import sys
from sphinx.cmd.build import main
sys.exit(main(["-q", "-W", "-b", "html", "-D", "suppress_warnings=toc,myst,ref", *sys.argv[1:],
    "-D", "include_patterns=try/verify.md", "-D", "root_doc=try/verify"]))
"""


@pytest.mark.slow
def test_a_site_without_npm_says_what_is_missing_in_one_line(tmp_path):
    docs = EXTENSIONS.parent
    environment = os.environ | {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    # The list of fonts is kept, since Matplotlib reports when it makes one.
    environment["MPLCONFIGDIR"] = matplotlib.get_cachedir()
    built = subprocess.run(
        [sys.executable, "-c", BUILD, str(docs), str(tmp_path / "site")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    assert built.stderr.splitlines() == [
        "verification in the browser is not part of this site: npm could not fetch pyodide 314.0.7"
    ]
    page = (tmp_path / "site" / "try" / "verify.html").read_text(encoding="utf-8")
    assert "is not part of this build" in page
    assert "mechdesign verify FOLDER" in re.sub("<[^>]*>", "", page)
    assert not (tmp_path / "site" / "_static" / "verify" / "pyodide").exists()
