"""Loss functions in files: the same function again, and 20 wrong files and matrices refused."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sparse
from refusals import Mistake, assert_refused

from mechdesign.errors import InputError, MechdesignError, StateError
from mechdesign.leakage import LossFunction, OpenChain
from mechdesign.model._markov import MarkovChain

P = np.array([[0.8, 0.2, 0.0], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]])
CASES: dict[str, Any] = {
    "dense": P,
    "sparse": sparse.csr_array(P),
    "unknown row": OpenChain([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0, 0, 0]]),
    "unknown rows": [[0.5, 0.3, 0.2], [0, 0, 0], [0, 0, 0]],
    "chain": MarkovChain(P),
    "one state": [[1.0]],
    "disjoint": np.eye(3),
    "equal rows": np.full((3, 3), 1 / 3),
}


def test_a_saved_function_is_the_same_again(tmp_path: Path) -> None:
    path = tmp_path / "loss.npz"
    for name, matrix in CASES.items():
        first = LossFunction(matrix)
        first.save(path)
        for again in (LossFunction.load(path), LossFunction.load(path, matrix)):
            assert again.lines == first.lines, name
            assert (again.n, again.digest, again.unknown.tolist()) == (first.n, first.digest, first.unknown.tolist()), (
                name
            )
            assert sparse.issparse(again.matrix) == sparse.issparse(first.matrix), name
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    # A dense file accepts the sparse form.
    LossFunction(P).save(path)
    assert LossFunction.load(path, sparse.csr_array(P)).n == 3


def arrays_of(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def write(path: Path, arrays: dict[str, Any], *, sign: bool) -> None:
    """Write changed arrays, with a digest that matches if `sign` is true."""
    from mechdesign.leakage._loss_file import _digest

    if sign:
        content = {name: np.asarray(array) for name, array in arrays.items() if name != "content_sha256"}
        arrays = content | {"content_sha256": np.array(_digest(content))}
    np.savez(path, **arrays)


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], Any], bool, type[MechdesignError], str]] = {
    "a piece, not signed": (lambda a: a.update(G=a["G"] / 2), False, StateError, "its digest does not match"),
    "a matrix entry": (lambda a: a.update(matrix=P[::-1]), True, StateError, "does not have the stored digest"),
    "the stored digest": (lambda a: a.update(matrix_sha256=np.array("0" * 64)), True, StateError, "stored digest"),
    "rising pieces": (lambda a: a.update(G=np.array([0.1, 0.2]), D=np.array([0.1, 0.2]), rest=np.zeros(2)), True,
                      StateError, "pieces are not those of a loss function"),
    "pieces above 1": (lambda a: a.update(G=a["G"] * 10), True, StateError, "pieces are not those"),
    "pieces of integers": (lambda a: a.update(G=a["G"].astype(int)), True, StateError, "pieces are not those"),
    "no pieces": (lambda a: a.update(G=np.zeros(0), D=np.zeros(0), rest=np.zeros(0)), True, StateError, "pieces"),
    "pieces that are not numbers": (lambda a: a.update(G=a["G"] * np.nan), True, StateError, "pieces"),
    "a column missing": (lambda a: a.pop("rest"), True, StateError, "is damaged or changed"),
    "a column too many": (lambda a: a.update(more=np.zeros(1)), True, StateError, "is damaged or changed"),
    "another format": (lambda a: a.update(format=np.array("mechdesign/9")), True, InputError, "a saved loss function"),
    "no format": (lambda a: a.pop("format"), True, InputError, "a saved loss function"),
    "a row that does not sum to 1": (lambda a: a.update(matrix=P * 2), True, InputError, "does not sum to 1"),
    "smoothing": (lambda a: a.update(smoothing=np.array(1.0), counts=P), True, StateError, "damaged or changed"),
    "no known row": (lambda a: a.update(matrix=P * 0), True, InputError, "has no known row"),
    "a row of zeros": (lambda a: a.update(matrix=P * [[1], [1], [0]]), True, StateError, "have the stored digest"),
    "a matrix of integers": (lambda a: a.update(matrix=np.eye(3, dtype=int)), True, StateError, "type float64"),
    "a matrix that is not square": (lambda a: a.update(matrix=P[:2]), True, InputError, "square"),
}  # fmt: skip


def reading(path: Path, arrays: dict[str, Any], *, sign: bool = True) -> Callable[[], object]:
    """Return what reads a file of these arrays."""

    def read() -> object:
        write(path, arrays, sign=sign)
        return LossFunction.load(path)

    return read


def test_changed_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "loss.npz"
    rows = []
    for name, (change, sign, error, says) in CHANGES.items():
        LossFunction(P).save(path)
        arrays = arrays_of(path)
        change(arrays)
        rows.append(Mistake(name, reading(path, arrays, sign=sign), says=says, error=error))
    for name, value, says in (
        ("indices", np.full(7, 100), "indices out of range"),
        ("indptr", np.array(3), "indices out of range"),
        ("indptr", np.array([0, 9, 9, 9]), "indices out of range"),
        ("data", np.array(["a"] * 7), "type float64"),
    ):
        LossFunction(sparse.csr_array(P)).save(path)
        arrays = arrays_of(path) | {name: value}
        rows.append(Mistake(f"sparse {name} {value}", reading(path, arrays), says=says, error=StateError))
    assert_refused(rows)


def test_another_matrix_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "loss.npz"
    LossFunction(P).save(path)
    others: dict[str, tuple[Any, str, str]] = {
        "smaller": (np.eye(2), "P", "another number of states than the saved function"),
        "other order": (P[[1, 0, 2]], "P", "is not the matrix of the saved function"),
        "open": (CASES["unknown row"], "P", "is not the matrix of the saved function"),
        "a text": ("P.csv", "P", ""),
        "twice": (P * 2, "P[0]", "does not sum to 1"),
    }
    assert_refused(
        Mistake(name, lambda other=other: LossFunction.load(path, other), where, says, InputError)
        for name, (other, where, says) in others.items()
    )


def test_other_files_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "objects.npz", format=np.array([{}], dtype=object))
    for name, content in {"empty.npz": b"", "text.npz": b"G,D\n", "half.npz": b"PK\x03\x04" + b"0" * 40}.items():
        (tmp_path / name).write_bytes(content)
    for name in ("empty.npz", "text.npz", "half.npz", "objects.npz"):
        with pytest.raises(InputError, match=rf"{name}: is (not a NumPy archive|damaged)"):
            LossFunction.load(tmp_path / name)
    for path in (tmp_path / "missing.npz", 3):
        with pytest.raises(InputError):
            LossFunction.load(path)  # type: ignore[arg-type]


def test_a_function_without_its_matrix_is_not_saved(tmp_path: Path) -> None:
    first = LossFunction(P)
    bare = LossFunction.from_lines(first.n, first.digest, list(first.lines))
    with pytest.raises(InputError, match="loss: was made from lines"):
        bare.save(tmp_path / "loss.npz")
    assert not list(tmp_path.iterdir())
