import numpy as np
import pytest
from rows import each_row
from scipy import stats

import mechdesign as md
from mechdesign.errors import CertificateError, InputError

ONE = 1 << 62


def channel(*rows, **labels):
    return md.Channel(np.array(rows, dtype=np.int64), **labels)


def test_rows_must_sum_to_two_to_the_62_exactly():
    assert channel([ONE, 0], [ONE // 2, ONE // 2]).denominator == ONE
    for row in ([ONE - 1, 0], [ONE, 1], [ONE // 2, ONE // 2 - 1], [2**62 + 1, 0]):
        with pytest.raises(InputError, match=r"numerators\[1\]"):
            channel([0, ONE], row)


def test_a_sum_that_wraps_around_is_not_taken_for_a_row():
    wraps = [2**62, 2**62, 2**62, 2**62, 2**62]  # sums to 2**62 modulo 2**64
    assert np.array(wraps, dtype=np.int64).sum() == ONE
    with pytest.raises(InputError, match="another sum"):
        channel(wraps)


def test_negative_entries_are_named():
    with pytest.raises(InputError, match=r"numerators\[0, 1\]: is negative"):
        channel([ONE + 1, -1])
    with pytest.raises(InputError, match="negative"):
        md.Channel(np.array([[2**63, 2**62]], dtype=np.uint64))


@each_row("bad", [np.ones((2, 2)), np.zeros(3, dtype=np.int64), np.zeros((0, 2), dtype=np.int64)])
def test_other_arrays_are_refused(bad):
    with pytest.raises(InputError, match="numerators"):
        md.Channel(bad)


def test_values_are_frozen():
    one = channel([ONE, 0])
    for array in (one.numerators, one.matrix):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 0


def test_matrix_is_the_rounded_quotient():
    numerators = np.array([[ONE // 3, ONE - ONE // 3], [1, ONE - 1]], dtype=np.int64)
    np.testing.assert_array_equal(md.Channel(numerators).matrix, [[1 / 3, 2 / 3], [2.0**-62, 1.0]])


def test_sampling_walks_the_cumulative_sums(monkeypatch):
    numerators = [3, 0, ONE - 5, 2]
    tested = channel(numerators)
    edges = np.array([0, 2, 3, ONE - 3, ONE - 2, ONE - 1], dtype=np.uint64)
    words = (edges << np.uint64(2)).tobytes()
    monkeypatch.setattr("mechdesign.model._channel.system.token_bytes", lambda count: words[:count])
    np.testing.assert_array_equal(tested.sample(0, edges.size), [0, 0, 2, 2, 3, 3])


def test_the_lowest_two_bits_of_a_word_do_not_matter(monkeypatch):
    words = np.array([3, 4], dtype=np.uint64)
    monkeypatch.setattr("mechdesign.model._channel.system.token_bytes", lambda count: words.tobytes())
    np.testing.assert_array_equal(channel([1, ONE - 1]).sample(0, 2), [0, 1])


@each_row("rng", [None, 7, np.random.default_rng(7)])
def test_frequencies_match_the_numerators(rng):
    probabilities = np.array([0.5, 0.25, 0.125, 0.125, 0.0])
    tested = channel((probabilities * ONE).astype(np.int64).tolist())
    drawn = tested.sample(0, 40_000, rng=rng)
    counts = np.bincount(drawn, minlength=5)
    assert counts[4] == 0
    assert stats.chisquare(counts[:4], probabilities[:4] * drawn.size).pvalue > 1e-6


def test_a_seed_reproduces_and_the_system_does_not():
    tested = channel([ONE // 2, ONE // 2])
    np.testing.assert_array_equal(tested.sample(0, 200, rng=1), tested.sample(0, 200, rng=1))
    assert (tested.sample(0, 200) != tested.sample(0, 200)).any()


def test_secrets_by_label_index_or_array():
    tested = channel([ONE, 0], [0, ONE], secrets=("home", "work"))
    np.testing.assert_array_equal(tested.sample("work", (2, 3)), np.ones((2, 3)))
    np.testing.assert_array_equal(tested.sample([1, 0, 1]), [1, 0, 1])
    np.testing.assert_array_equal(tested.sample(np.array([[1], [0]])), [[1], [0]])
    assert tested.sample(1).shape == ()
    assert tested.sample(0, 0).shape == (0,)


def test_bad_requests_are_named():
    tested = channel([ONE, 0], [0, ONE], secrets=("home", "work"))
    for secret in ("gym", 2, -1, 0.5, [0, 2]):
        with pytest.raises(InputError, match="secret"):
            tested.sample(secret, 1 if np.ndim(secret) == 0 else None)
    for size in (-1, 1.5, (2, -1)):
        with pytest.raises(InputError, match="size"):
            tested.sample(0, size)
    with pytest.raises(InputError, match="size"):
        tested.sample([0, 1], 2)


def test_labels_must_fit_and_differ():
    with pytest.raises(InputError, match="secrets"):
        channel([ONE, 0], secrets=("a", "b"))
    with pytest.raises(InputError, match="observables"):
        channel([ONE, 0], observables=("a", "a"))


def test_load_from_a_directory_or_a_lone_file(tmp_path):
    secrets = md.Domain.from_labels(["home", "work"])
    problem = md.Problem([0.5, 0.5], 1 - np.eye(2), [md.MetricPrivacy(1, 1 - np.eye(2))], secrets=secrets)
    design = md.design(problem)
    design.save(tmp_path)
    for path in (tmp_path, str(tmp_path), tmp_path / "channel.npz"):
        loaded = md.Channel.load(path)
        np.testing.assert_array_equal(loaded.numerators, design.channel.numerators)
        assert loaded.secrets == ("home", "work")


def test_load_refuses_what_is_no_channel(tmp_path):
    with pytest.raises(CertificateError, match="missing"):
        md.Channel.load(tmp_path)
    with pytest.raises(CertificateError, match="missing"):
        md.Channel.load(tmp_path / "channel.npz")
    (tmp_path / "channel.npz").write_bytes(b"PK\x03\x04 truncated")
    with pytest.raises(CertificateError, match=r"channel\.npz"):
        md.Channel.load(tmp_path / "channel.npz")
    np.savez(tmp_path / "channel.npz", numerators=np.array([[1, 2]]), exponent=np.int64(62))
    with pytest.raises(CertificateError, match="another sum"):
        md.Channel.load(tmp_path / "channel.npz")


def test_channels_from_matrices_are_the_nearest_integers():
    matrix = np.array([[0.1] * 10, [1.0] + [0.0] * 9])
    channel = md.Channel.from_matrix(matrix, observables=list("abcdefghij"))
    assert channel.observables == tuple("abcdefghij")
    # Ten floats 0.1 do not add up to 1; their exact shares do.
    assert set(channel.numerators[0].tolist()) <= {2**62 // 10, 2**62 // 10 + 2**62 % 10}
    assert channel.numerators[1].tolist() == [2**62] + [0] * 9
    assert abs(md.Channel.from_matrix([[0.5, 0.5 + 9e-7]]).matrix.sum() - 1) < 1e-15
    for wrong, path in (([[0.5, 0.5 + 2e-6]], r"matrix\[0\]"), ([[1.5, -0.5]], r"matrix\[0,1\]"), ([1.0], "matrix")):
        with pytest.raises(InputError, match=f"^{path}: "):
            md.Channel.from_matrix(wrong)
