"""Run an exported module in V8, as the package mini-racer has it: an engine without `crypto` and without `atob`."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from py_mini_racer import MiniRacer

# What browsers have. The digest is Python's: the engine asks for that of the text in the module, or of no other.
_PLATFORM = """
globalThis.atob = (text) => {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  let [bits, held, found] = [0, 0, []];
  for (const letter of text.replace(/=+$/, "")) {
    [bits, held] = [((bits << 6) | letters.indexOf(letter)) & 0xffff, held + 6];
    if (held >= 8) found.push(String.fromCharCode((bits >> (held -= 8)) & 255));
  }
  return found.join("");
};
globalThis.crypto = { subtle: { digest: async (name, bytes) => {
  const asked = bytes.reduce((text, byte) => text + String.fromCharCode(byte), "");
  if (name !== "SHA-256" || asked !== HASHED[0]) throw new Error("another text than that of the module");
  return Uint8Array.from(HASHED[1]).buffer;
} } };
"""
_CALLS = """
const called = (work) => { try { return JSON.stringify({ value: work() }); }
                           catch (error) { return JSON.stringify({ error: String(error) }); } };
const draws = (place, words, options) => called(() => words.map((word) =>
    sample(place, { ...options, random: (bytes) => bytes.set(word) })));
const stream = (place, words, size, options) => called(() => Array.from({ length: size }, () =>
    sample(place, { ...options, random: (bytes) => bytes.set(words.shift()) })));
let settled = null;
const verdict = () => { verify().then((value) => { settled = { value }; }, (error) => {
    settled = { error: String(error) }; }); return "asked"; };
const outcome = () => JSON.stringify(settled);
const cell = (place, options) => called(() => cellOf(place, options));
const lower = (numerator, denominator, weights) => called(() =>
    weights.map((weight) => expBelow(BigInt(numerator), BigInt(denominator), weight).toString()));
const shown = () => called(() => about);
const draws_with = (place, text) => called(() => sample(place, { random: (0, eval)(text) }));
const plain = (place) => called(() => sample(place));
"""
_FROM_SCRIPT = "\nconst { about, sample, cellOf, verify } = mechdesign;\n"


class Module:
    """An exported module or classic script, loaded; an error in it is a `RuntimeError`."""

    def __init__(self, source: str, platform: str = _PLATFORM) -> None:
        self._engine = MiniRacer()
        text = json.loads(re.findall(r'^const TEXT = (".*");$', source, re.MULTILINE)[0])
        hashed = json.dumps([text, list(hashlib.sha256(text.encode()).digest())])
        if source.lstrip().startswith("var mechdesign"):
            source += _FROM_SCRIPT
        # What is evaluated here is a script, which cannot export.
        source = re.sub(r"^export ", "", source, flags=re.MULTILINE)
        self._engine.eval(f"const HASHED = {hashed};{platform}{source}{_CALLS}")

    def call(self, name: str, *arguments: Any) -> Any:
        """Call one of the functions above."""
        return self._value(self._engine.call(name, *arguments))

    def verify(self) -> dict[str, Any]:
        """Return the verdict of the module, which is a promise."""
        self._engine.call("verdict")
        found: dict[str, Any] = self._value(self._engine.call("outcome"))
        return found

    def _value(self, text: str) -> Any:
        found = json.loads(text)
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
