"""Run an exported module in V8, as the package mini-racer has it: an engine without `crypto` and without `atob`."""

from __future__ import annotations

import json
import re
from typing import Any

from py_mini_racer import MiniRacer

_CALLS = """
const called = (work) => { try { return JSON.stringify({ value: work() }); }
                           catch (error) { return JSON.stringify({ error: String(error) }); } };
const draws = (place, words, options) => called(() => words.map((word) =>
    sample(place, { ...options, random: (bytes) => bytes.set(word) })));
const stream = (place, words, size, options) => called(() => Array.from({ length: size }, () =>
    sample(place, { ...options, random: (bytes) => bytes.set(words.shift()) })));
const visit = (places, options) => called(() => places.map((place) =>
    place === "forget" ? forget() ?? null : sample(place, { ...options, random })));
const counted = () => called(() => count);
const largestCount = () => called(most);
let seed = 1;
const random = (bytes) => bytes.forEach((_, i) => {
    bytes[i] = (seed = (seed * 48271) % 2147483647) >> 8; });
const verdict = () => called(verify);
const cell = (place, options) => called(() => cellOf(place, options));
const lower = (numerator, denominator, weights) => called(() =>
    weights.map((weight) => expBelow(BigInt(numerator), BigInt(denominator), weight).toString()));
const shown = () => called(() => about);
const draws_with = (place, text) => called(() => sample(place, { random: (0, eval)(text) }));
const plain = (place) => called(() => sample(place));
"""
# A classic script defines one object; `count` changes, so that it is read anew.
_FROM_SCRIPT = """
const { most, about, sample, forget, cellOf, verify, expBelow } = mechdesign;
Object.defineProperty(globalThis, "count", { get: () => mechdesign.count });
"""


class Module:
    """An exported module or classic script, loaded; an error in it is a `RuntimeError`."""

    def __init__(self, source: str) -> None:
        self._engine = MiniRacer()
        if source.lstrip().startswith("var mechdesign"):
            source += _FROM_SCRIPT
        # What is evaluated here is a script, which cannot export.
        self._engine.eval(re.sub(r"^export ", "", source, flags=re.MULTILINE) + _CALLS)

    def call(self, name: str, *arguments: Any) -> Any:
        """Call one of the functions above."""
        found = json.loads(self._engine.call(name, *arguments))
        if "error" in found:
            raise RuntimeError(found["error"])
        return found["value"]

    def draw(self, place: dict[str, Any], data: bytes, **options: Any) -> list[dict[str, Any]]:
        """Sample once for every 8 of the random bytes."""
        return self.call("draws", place, _words(data), options)

    def draw_from(self, place: dict[str, Any], data: bytes, size: int, **options: Any) -> list[dict[str, Any]]:
        """Sample so many times, each time taking from the random bytes as many as it needs."""
        return self.call("stream", place, _words(data), size, options)


def _words(data: bytes) -> list[list[int]]:
    return [list(data[start : start + 8]) for start in range(0, len(data), 8)]
