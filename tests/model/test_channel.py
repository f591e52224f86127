import numpy as np
import pytest
from rows import each_row
from scipy import stats

import mechdesign as md

ONE = 1 << 62


def channel(*rows, **labels):
    return md.Channel(np.array(rows, dtype=np.int64), **labels)


def test_values_are_frozen():
    one = channel([ONE, 0])
    for array in (one.numerators, one.matrix):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 0


def test_matrix_is_the_rounded_quotient():
    assert channel([ONE, 0], [ONE // 2, ONE // 2]).denominator == ONE
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


def test_load_from_a_directory_or_a_lone_file(tmp_path):
    secrets = md.Domain.from_labels(["home", "work"])
    problem = md.Problem([0.5, 0.5], 1 - np.eye(2), [md.MetricPrivacy(1, 1 - np.eye(2))], secrets=secrets)
    design = md.design(problem)
    md.save(design, tmp_path, report=False)
    for path in (tmp_path, str(tmp_path), tmp_path / "channel.npz"):
        loaded = md.Channel.load(path)
        np.testing.assert_array_equal(loaded.numerators, design.channel.numerators)
        assert loaded.secrets == ("home", "work")


def test_channels_from_matrices_are_the_nearest_integers():
    matrix = np.array([[0.1] * 10, [1.0] + [0.0] * 9])
    channel = md.Channel.from_matrix(matrix, observables=list("abcdefghij"))
    assert channel.observables == tuple("abcdefghij")
    # Ten floats 0.1 do not add up to 1; their exact shares do.
    assert set(channel.numerators[0].tolist()) <= {2**62 // 10, 2**62 // 10 + 2**62 % 10}
    assert channel.numerators[1].tolist() == [2**62] + [0] * 9
    assert abs(md.Channel.from_matrix([[0.5, 0.5 + 9e-7]]).matrix.sum() - 1) < 1e-15
