"""Partitions in runs: against plain lists of labels, in files, and for more values than could be listed."""

from __future__ import annotations

import base64
import itertools
import json
import zlib

import numpy as np
import pytest

from mechdesign.errors import InputError, LedgerError
from mechdesign.leakage._contents import _digest, read_ledger
from mechdesign.leakage._partition import LARGEST_LISTED, UNKNOWN, Partition
from mechdesign.leakage.accounting import Ledger


def numbered(labels):
    """Number classes by their first values, one value after the other."""
    seen = {}
    return [seen.setdefault(label, len(seen)) for label in labels]


def split(fine, coarse):
    """Tell whether two values of one class of `coarse` are in different ones of `fine`, pair by pair."""
    pairs = itertools.combinations(range(len(fine)), 2)
    return any(coarse[x] == coarse[y] and fine[x] != fine[y] for x, y in pairs)


def test_every_short_partition_is_what_its_labels_say_and_has_one_text():
    texts = {}
    for n in range(1, 6):
        for labels in itertools.product(range(n), repeat=n):
            made = Partition.of(labels)
            assert made.labels.tolist() == numbered(labels)
            assert (len(made), made.count) == (n, len(set(labels)))
            assert Partition.read(made.text(), "p") == made
            assert texts.setdefault(made.text(), numbered(labels)) == numbered(labels)
    # The numbers of Bell.
    assert len(texts) == 1 + 2 + 5 + 15 + 52


def test_one_partition_splits_another_where_a_pair_is_told_apart():
    small = [labels for labels in itertools.product(range(4), repeat=4) if list(labels) == numbered(labels)]
    for fine, coarse in itertools.product(small, repeat=2):
        assert Partition.of(fine).splits(Partition.of(coarse)) == split(fine, coarse), (fine, coarse)


def test_long_partitions_are_read_back_from_short_texts():
    dice = np.random.default_rng(35)
    blocks = dice.integers(0, 300, 50_000)
    irregular = Partition.of(blocks)
    assert Partition.read(irregular.text(), "p") == irregular
    # The file of a ledger holds it once.
    assert len(irregular.text()) < 200_000
    regular = Partition.of(np.tile(np.arange(1000), 1000))
    assert len(regular.text()) < 100
    assert Partition.read(regular.text(), "p").labels[-1] == 999
    assert Partition.of(np.arange(10**5) // 7).text().startswith("zlib:")


def test_values_that_nobody_could_list_have_partitions():
    size = 10**15
    each, joined, all_of_them = (
        Partition.of_each(size + 1),
        Partition.of_lengths([size, 1]),
        Partition.of_lengths([size + 1]),
    )
    assert [part.text() for part in (each, joined)] == ["0..1000000000000000", "0*1000000000000000 1"]
    assert [each.splits(joined), joined.splits(each), each.splits(each)] == [True, False, False]
    assert [joined.splits(all_of_them), all_of_them.splits(joined)] == [True, False]
    pairs = Partition.of_lengths([2, size - 2, 1])
    assert [pairs.splits(joined), joined.splits(pairs), each.splits(pairs)] == [True, False, True]
    for one, other in itertools.product((each, joined, all_of_them, pairs), repeat=2):
        assert Partition.read(one.text(), "p").splits(other) == one.splits(other)


def test_just_inside_and_just_outside_what_is_listed():
    with pytest.raises(InputError, match=f"from 1 to {LARGEST_LISTED}"):
        Partition.of(np.broadcast_to(np.int64(0), LARGEST_LISTED + 1))
    assert len(Partition.of(np.zeros(1, dtype=np.int64))) == len(UNKNOWN) == 1
    for wrong in ([], [[0]], [0.5], [-1], "ab"):
        with pytest.raises(InputError, match="labels"):
            Partition.of(wrong)


def packed(content):
    return "zlib:" + base64.b64encode(zlib.compress(content)).decode()


def test_texts_that_are_no_partition_are_refused():
    texts = [
        None, 3, "", " ", "0 ", "1", "0*0", "0*1x", "0..0", "2..1", "0 2", "0 0", "0*2 0*3", "0 1", "0..2 3", "0 0..1",
        "-1", "0*1152921504606846978", "0*1152921504606846977 1*9", "9" * 19, "zlib:", "zlib:!", "zlib:AAAA", "é",
        "!", "AAAA", "eJwDAAAAAAE=", Partition.of([0, 1]).text() + "A",
        packed(b"0") + "A", packed(b"0*2 0"), packed(b"\xff"), packed(b"0 " * 2**24 + b"0"),
    ]  # fmt: skip
    for text in texts:
        with pytest.raises(InputError, match="entries: is not a partition"):
            Partition.read(text, "entries")


def test_a_file_holds_each_partition_once(tmp_path):
    path = tmp_path / "l.json"
    part = Partition.of(np.random.default_rng(1).integers(0, 50, 20_000))
    ledger = Ledger(path=path)
    sizes = []
    for _ in range(5):
        same = Partition.of(part.labels)
        ledger.spend("a", "b", epsilon=0, policy="p", domain="d", components=same, classes=same)
        sizes.append(path.stat().st_size)
    assert np.ptp(np.diff(sizes)) < 50
    assert sizes[1] - sizes[0] < 500
    entries = read_ledger(path).entries
    assert len({id(each) for entry in entries for each in (entry.components, entry.classes)}) == 1
    assert entries[0].components == part


def test_an_entry_that_names_no_partition_or_no_policy_is_refused(tmp_path):
    path, part = tmp_path / "l.json", Partition.of([0])
    Ledger(path=path).spend("a", "b", epsilon=0, domain="d", components=part, classes=part, policy="c")
    document = json.loads(path.read_text(encoding="utf-8"))
    del document["sha256"]
    for name, wrong, says in (
        ("classes", [-1, 1, "0", 0.0, [0], False], "is not the index of a partition"),
        ("policy", [3, "", ["x"]], "is incomplete"),
    ):
        for value in wrong:
            changed = document | {"entries": [document["entries"][0] | {name: value}]}
            changed["sha256"] = _digest(changed)
            path.write_text(json.dumps(changed), encoding="utf-8")
            with pytest.raises(LedgerError, match=says):
                Ledger(path=path)
