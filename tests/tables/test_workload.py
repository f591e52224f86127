"""Workloads: their Gram matrices, answers and variances against the plain matrix."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mechdesign.tables._domain import Domain
from mechdesign.tables._workload import MatrixQueries, all_ranges, identity, marginals, prefixes, ranges_of

_LINE = Domain({"x": range(7)})
_TABLE = Domain({"age": range(3), "sex": ["f", "m"], "smokes": ["no", "yes"]})


def test_the_rule_agrees_with_the_matrix():
    rng = np.random.default_rng(1)
    some = ranges_of(_LINE, [(0, 3), (2, 2), (0, 3), (1, 6)])
    for given, workload in enumerate((identity(7), prefixes(7), all_ranges(7), marginals(_LINE), some)):
        rows = workload.matrix()
        assert rows.shape == (workload.count, 7)
        np.testing.assert_array_equal(workload.gram(), rows.T @ rows, err_msg=str(given))
        assert workload.integral
        histogram = rng.integers(0, 50, 7)
        np.testing.assert_array_equal(workload.answers(histogram), rows @ histogram, err_msg=str(given))
        root = rng.normal(size=(7, 7))
        variances = np.diag(rows @ root @ root.T @ rows.T)
        np.testing.assert_allclose(workload.variances(root @ root.T), variances, rtol=1e-9, err_msg=str(given))


def test_all_ranges_in_closed_form():
    x = np.arange(40)
    expected = (np.minimum.outer(x, x) + 1) * (40 - np.maximum.outer(x, x))
    np.testing.assert_array_equal(all_ranges(40).gram(), expected)
    np.testing.assert_array_equal(prefixes(40).gram(), 40 - np.maximum.outer(x, x))
    np.testing.assert_array_equal(identity(40).gram(), np.eye(40))


def test_half_a_million_ranges_stay_implicit():
    workload = all_ranges(1024)
    assert workload.count == 524_800
    assert workload.answers(np.ones(1024)).max() == 1024
    assert workload.gram().shape == (1024, 1024)


def test_marginal_tables():
    workload = marginals(_TABLE, [["age"], ["sex", "smokes"], []])
    counts = np.arange(12).reshape(3, 2, 2)
    expected = np.concatenate([counts.sum(axis=(1, 2)), counts.sum(axis=0).ravel(), [counts.sum()]])
    np.testing.assert_array_equal(workload.answers(counts.ravel()), expected)
    assert workload.phrase == "the marginal tables age; sex × smokes; total"
    assert marginals(_TABLE, 2).count == 3 * 2 + 3 * 2 + 2 * 2
    assert marginals(_TABLE).count == 3 + 2 + 2


def test_matrices_dense_and_sparse():
    rows = np.array([[1, 0, 0.5], [0, -2, 0]])
    dense, thin = MatrixQueries(rows), MatrixQueries(sparse.csr_matrix(rows))
    np.testing.assert_array_equal(dense.matrix(), thin.matrix())
    assert not dense.integral
    assert MatrixQueries([1, 1, 0]).count == 1
