"""The first verifier: what it returns, what it needs, and labels."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from bundles import line, made, put, repair

from mechdesign.certify._bundle import encode
from mechdesign.certify._certificate import certify
from mechdesign.certify._verify import verify
from mechdesign.errors import CertificateError


def test_a_whole_set_is_accepted(tmp_path: Path) -> None:
    for objective in ("expected", "worst"):
        found = verify(put(tmp_path, made(f"{objective} cost")))
        assert found.holds
        assert found.objective == objective
        assert found.lower_bound > 0
        assert 0.599 < found.epsilon[0] <= 0.6
        assert found.epsilon[2] <= 1.2
        assert found.distortion[0] >= 0.1


def test_labels_are_counted_by_rows_and_columns(tmp_path: Path) -> None:
    """Three answers for four secrets: labels of either kind fit only their own side."""
    numerators = np.tile([2**61, 2**60, 2**60], (4, 1))
    evidence = line(4, 0.6, "expected", numerators=numerators, cost=np.ones((4, 3)), requirements=(), multipliers=None)
    three, four = np.array(["a", "b", "c"]), np.array(["a", "b", "c", "d"])
    for labels in ({"secrets": four, "observables": three}, {"observables": three}, {"secrets": four}):
        verify(put(tmp_path, encode(evidence, certify(evidence), arrays=labels)))
    for labels, name in (({"secrets": three}, "secrets"), ({"observables": four}, "observables")):
        put(tmp_path, encode(evidence, certify(evidence), arrays=labels))
        with pytest.raises(CertificateError, match=f"array {name} of channel.npz does not contain . different labels"):
            verify(tmp_path)
    # Labels of the answers may not repeat either.
    put(tmp_path, encode(evidence, certify(evidence), arrays={"observables": three[[0, 1, 1]]}))
    with pytest.raises(CertificateError, match="observables"):
        verify(tmp_path)


ALONE = """
import runpy, sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {*sys.stdlib_module_names, "numpy", "mechdesign"}:
            raise ImportError(f"{name} is not installed")
sys.meta_path.insert(0, Blocked())
runpy.run_module("mechdesign.certify", run_name="__main__", alter_sys=True)
"""


def kernel(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the verifier in a process in which only Python, NumPy and this package can be imported."""
    command = [sys.executable, "-c", ALONE, *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60)


def test_the_kernel_alone_verifies_with_nothing_but_numpy_installed(tmp_path: Path) -> None:
    put(tmp_path, made("expected cost"))
    done = kernel(str(tmp_path))
    assert done.returncode == 0, done.stderr
    claim = "metric privacy, epsilon 0.6: holds; least epsilon "
    assert done.stdout.startswith(f"{tmp_path} verifies.\n{claim}")
    put(tmp_path, repair(made("expected cost"), lambda d: d["requirements"][0].update(epsilon="0.5")))
    done = kernel(str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert "does not verify: requirements[0] (metric privacy, epsilon 0.5) does not hold" in done.stderr
    assert "worst pair of secrets: " in done.stderr
