"""The JavaScript module returns the same verdicts as the package and, for given random bits, the same samples."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import shutil
import subprocess
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import mechdesign as md
from mechdesign.certify import _privacy as privacy
from mechdesign.certify._certificate import certify
from mechdesign.certify._claims import ExponentBound
from mechdesign.certify._evidence import Evidence
from mechdesign.certify._exact import exact
from mechdesign.certify._exponential import exp_lower
from mechdesign.certify._stated import Stated
from mechdesign.model._channel import EXPONENT, Channel
from mechdesign.model._requirements._requirement import Requirement
from mechdesign.synthesis.formats._format import Exported
from mechdesign.synthesis.formats._registry import FORMATS

pytest.importorskip("py_mini_racer", reason="mini-racer, of the extra test, is not installed")

from javascript import Module
from long import mostly_long
from py_mini_racer import MiniRacer

TOTAL = 1 << EXPONENT


def exported(problem: md.Problem, numerators: np.ndarray[Any, Any]) -> Exported:
    labels = [domain.labels if domain is not None else () for domain in (problem.secrets, problem.observables)]
    evidence = Evidence(numerators, EXPONENT, problem.prior, problem.cost, problem.objective, problem.stated, None)
    return Exported(problem, Channel(numerators, *labels), certify(evidence))


def source(made: Exported, **options: Any) -> str:
    return b"".join(FORMATS["js"].parts(made, options)).decode()


def channel_like(weights: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return integers near the rows of `weights`, which sum to 2**62."""
    rows = []
    for row in weights / weights.sum(axis=1, keepdims=True):
        numerators = [int(math.ldexp(entry, EXPONENT)) for entry in row.tolist()]
        numerators[int(np.argmax(row))] += TOTAL - sum(numerators)
        rows.append(numerators)
    return np.array(rows, dtype=np.int64)


def random_case(rng: np.random.Generator) -> Exported:
    """Return a channel with one or two bounds, at, just above or just below its tight values."""
    columns, rows, m = rng.integers(1, 4), rng.integers(2, 4), int(rng.integers(2, 7))
    domain = md.Domain.grid(int(columns), int(rows), float(columns), float(rows))
    n = domain.size
    distance = md.distances.euclidean(domain)
    weights = np.exp(-rng.uniform(0.2, 3) * rng.random((n, m)))
    if rng.random() < 0.2:
        weights[:, 0] = 0 if rng.random() < 0.5 else np.eye(n)[0]
    numerators = channel_like(weights)
    kinds: list[Callable[[Any], Requirement]] = [lambda epsilon: md.MetricPrivacy(epsilon, distance)]
    if rng.random() < 0.3:
        kinds.append(lambda epsilon: md.ThresholdPrivacy(epsilon, distance, 1.0))
    if rng.random() < 0.3:
        kinds = [lambda epsilon: md.GraphPrivacy(epsilon, nx.cycle_graph(n))]
    asked = []
    for kind in kinds:
        claim = kind(1).stated()[0].claim(n)
        assert isinstance(claim, ExponentBound)
        tight = privacy.realised(numerators, EXPONENT, claim)
        tight = 1.0 if not math.isfinite(tight) or tight <= 0 else tight
        factor = rng.choice([1, 1 + 1e-15, 1 - 1e-15, 1 - 1e-9, 1.5, 0.7])
        asked.append(kind(exact(float(tight * factor))))
    observables = md.Domain.from_labels(list("abcdefg")[:m])
    problem = md.Problem(md.Prior.uniform(n), rng.random((n, m)), asked, secrets=domain, observables=observables)
    return exported(problem, numerators)


@pytest.mark.slow
@pytest.mark.parametrize("first", mostly_long(range(0, 200, 50)))
def test_random_channels_get_the_same_verdicts_and_samples(first: int) -> None:
    rng = np.random.default_rng(16 + first)
    verdicts = []
    for seed in range(first, first + 50):
        made = random_case(rng)
        module = Module(source(made))
        found = module.verify()
        held = [each.holds for each in made.certificate.requirements]
        assert [each["holds"] for each in found["requirements"]] == held
        assert found["holds"] == made.certificate.holds
        assert found["revealed"] == list(made.certificate.revealed or ())
        verdicts += held
        secret = int(rng.integers(made.problem.prior.size))
        data = np.random.default_rng(seed).bytes(8 * 20)
        drawn = [each["index"] for each in module.draw({"secret": secret}, data)]
        assert drawn == made.channel.sample(secret, 20, seed).tolist()
    assert 10 < sum(verdicts) < len(verdicts) - 10


def test_each_pair_of_all_is_checked() -> None:
    for s, t in ((s, t) for s in range(3) for t in range(3) if s != t):
        distance = 50.0 * (1 - np.eye(3))
        distance[s, t] = distance[t, s] = 1.0
        weights = np.full((3, 2), [0.15, 0.85])
        weights[s], weights[t] = [0.3, 0.7], [0.05, 0.95]
        problem = md.Problem(md.Prior.uniform(3), np.ones((3, 2)), [md.MetricPrivacy(1, distance)])
        found = Module(source(exported(problem, channel_like(weights)))).verify()
        assert found["reason"] == f"p(0 | {s}) exceeds its bound by p(0 | {t})"


def test_secrets_that_an_answer_reveals_are_the_same() -> None:
    rng = np.random.default_rng(17)
    sizes = set()
    for _ in range(15):
        n, m = int(rng.integers(1, 6)), int(rng.integers(2, 7))
        weights = np.where(rng.random((n, m)) < 0.6, 0.0, 1.0)
        weights[:, int(rng.integers(m))] = 1.0
        graph = nx.empty_graph(n)
        problem = md.Problem(md.Prior.uniform(n), rng.random((n, m)), [md.GraphPrivacy(1, graph)])
        made = exported(problem, channel_like(weights))
        found = Module(source(made)).verify()
        assert found["revealed"] == list(made.certificate.revealed or ())
        sizes.add(len(found["revealed"]))
    assert len(sizes) > 2


@pytest.fixture(scope="module")
def city() -> Exported:
    domain = md.Domain.geographic_grid(4, 3, south=35.6, north=35.8, west=139.6, east=139.9)
    distance = md.distances.euclidean(domain)
    asked = [md.MetricPrivacy("0.29", distance), md.DistortionPrivacy(1, distance)]
    problem = md.Problem(
        md.Prior.uniform(12), distance, asked, secrets=domain, observables=domain, title="`Tōkyō` ${x}"
    )
    made = md.design(problem)
    return Exported(made.problem, made.channel, made.certificate)


@pytest.fixture(scope="module")
def module(city: Exported) -> Module:
    return Module(source(city))


def test_places_and_the_description_of_the_channel(city: Exported, module: Module) -> None:
    found = module.verify()
    assert found["holds"]
    # Floors need the prior, which the module does not contain.
    assert [each["holds"] for each in found["requirements"]] == [True, None]
    assert module.call("shown")["title"] == "`Tōkyō` ${x}"
    assert module.call("shown")["requirements"][0]["claim"] == "ε = 0.29"
    rng = np.random.default_rng(1)
    domain = city.problem.secrets
    assert domain is not None
    assert domain.coordinates is not None
    borders = domain.borders(domain.axes)
    assert borders is not None
    places = [*zip(rng.uniform(35.5, 35.9, 50), rng.uniform(139.5, 140, 50), strict=True)]
    places += [(latitude, longitude) for latitude in borders[0] for longitude in borders[1]]
    for latitude, longitude in places:
        place = {"lat": float(latitude), "lon": float(longitude)}
        expected = domain.cell_of(latitude, longitude, outside="nearest")
        assert module.call("cell", place, {"outside": "nearest"}) == expected
    data = np.random.default_rng(5).bytes(8 * 30)
    drawn = module.draw({"lat": 35.68, "lon": 139.75}, data)
    index = city.channel.sample(domain.cell_of(35.68, 139.75), 30, 5)
    assert [each["index"] for each in drawn] == index.tolist()
    assert [[each["lat"], each["lon"]] for each in drawn] == domain.coordinates[index].tolist()
    assert [each["label"] for each in drawn] == [domain.labels[each] for each in index]


def test_places_without_a_grid() -> None:
    towns = md.Domain.from_coordinates([52.5, 48.1, 53.6], [13.4, 11.6, 10.0], ["Berlin", "München", "Hamburg"])
    cost = md.distances.hamming(3)
    problem = md.Problem(md.Prior.uniform(3), cost, [md.MetricPrivacy(1, cost)], secrets=towns, observables=towns)
    made = Module(source(exported(problem, channel_like(np.exp(-np.asarray(cost))))))
    rng = np.random.default_rng(2)
    for latitude, longitude in zip(rng.uniform(45, 55, 40).tolist(), rng.uniform(8, 15, 40).tolist(), strict=True):
        assert made.call("cell", {"lat": latitude, "lon": longitude}, {}) == towns.cell_of(latitude, longitude)
    data = bytes(8)
    assert made.draw({"secret": "München"}, data)[0]["label"] == "Berlin"


def test_places_across_180_degrees() -> None:
    cost = md.distances.hamming(8)
    privacy = [md.MetricPrivacy(1, cost)]
    numerators = channel_like(np.exp(-np.asarray(cost)))
    for domain in (
        md.Domain.geographic_grid(4, 2, south=-19, north=-16, west=177, east=182),
        md.Domain.from_coordinates([-18.0] * 8, [177.5, 178, 179, 180, -179.5, -179, -178.5, -178]),
    ):
        problem = md.Problem(md.Prior.uniform(8), cost, privacy, secrets=domain, observables=domain)
        made = Module(source(exported(problem, numerators)))
        for longitude in (177.0, 179.9, 180.0, -180.0, -179.9, -178.0):
            assert made.call("cell", {"lat": -18.0, "lon": longitude}, {}) == domain.cell_of(-18.0, longitude)
        assert domain.degrees is not None
        (drawn,) = made.draw({"lat": -18.0, "lon": -178.1}, bytes(8))
        assert [drawn["lat"], drawn["lon"]] == domain.degrees[drawn["index"]].tolist()
        assert abs(drawn["lon"]) <= 180


def test_wrong_places(module: Module) -> None:
    wrong: list[tuple[Any, str]] = [
        ({"lat": 30.0, "lon": 139.7}, "lat is outside the grid, from 35.6 to 35.8: tell the user"),
        ({"lat": 139.7, "lon": 35.7}, "lat must be between -90 and 90 degrees: lat and lon look interchanged"),
        ({"x": 1.0, "y": 1.0}, "lat is missing: give {lat, lon}"),
        ({"latitude": 35.7, "longitude": 139.7}, "lat is missing: give {lat, lon}"),
        ({"lat": "35.7", "lon": 139.7}, "lat must be a finite number"),
        ({"secret": 12}, "the secret is not known: give a label, or an index from 0 to 11"),
        ({"secret": -1}, "the secret is not known: give a label, or an index from 0 to 11"),
        ({"secret": "Ginza"}, "the secret is not known: give a label"),
        (None, "give {lat, lon}, {x, y} or {secret}"),
    ]
    for place, message in wrong:
        with pytest.raises(RuntimeError, match=re.escape(message)):
            module.draw(place, bytes(8))


def test_without_secure_randomness_nothing_is_drawn(module: Module) -> None:
    with pytest.raises(RuntimeError, match=r"crypto\.getRandomValues is not available"):
        module.call("plain", {"secret": 0})


def altered(text: str, change: Any) -> str:
    """Change the data of a module, and replace the digest by the digest of the changed data."""
    quoted = re.search(r'^const TEXT = (".*");$', text, re.MULTILINE)
    assert quoted is not None
    data = json.loads(json.loads(quoted[1]))
    change(data)
    new = json.dumps(data, separators=(",", ":"))
    digest = hashlib.sha256(new.encode()).hexdigest()
    text = text.replace(quoted[1], json.dumps(new))
    return re.sub(r'SHA256 = "\w+"', f'SHA256 = "{digest}"', text)


def moved(data: dict[str, Any], by: int, row: int = 0) -> None:
    numerators = np.frombuffer(base64.b64decode(data["numerators"]), dtype="<u8").reshape(data["secrets"], -1).copy()
    first, second = numerators[row].argmin(), numerators[row].argmax()
    numerators[row, first] = numerators[row, first] + np.uint64(by)
    numerators[row, second] = numerators[row, second] - np.uint64(by)
    data["numerators"] = base64.b64encode(numerators.tobytes()).decode()


def emptied(data: dict[str, Any]) -> None:
    data["numerators"] = base64.b64encode(bytes(8 * data["secrets"] * data["observables"])).decode()


def test_every_single_change_of_the_data_is_refused(city: Exported) -> None:
    text = source(city)
    start, end = text.index('const TEXT = "') + 14, text.index('";\nconst SHA256')
    rng = np.random.default_rng(9)
    for place in rng.integers(start, end, 8).tolist():
        if text[place] in '\\"':
            continue
        changed = text[:place] + ("A" if text[place] != "A" else "B") + text[place + 1 :]
        try:
            made = Module(changed)
        except Exception:
            # A module whose data are not JSON does not load.
            continue
        found = made.verify()
        assert found == {"holds": False, "reason": found["reason"], "requirements": [], "revealed": []}
        assert found["reason"] == "the module was changed: its digest does not match its data"


# What is changed in the data of a module, with a new digest; see `tests/support/tampering.py` for exported bundles.
CHANGES: dict[str, tuple[Any, str]] = {
    "much of a row": (lambda data: moved(data, 1 << 58), "exceeds its bound"),
    "a smaller ε": (lambda data: data["requirements"][0]["bound"].update(epsilon=["1", "4"]), "exceeds its bound"),
    "a unit too many": (lambda data: data.update(numerators=one_more(data["numerators"])), "does not sum to 1"),
    "zeros": (emptied, "row 0 of the channel does not sum to 1"),
    "fewer pairs": (
        lambda data: data["requirements"][0]["bound"].update(places="AAAA"),
        "does not state one factor for each pair",
    ),
    "more answers": (lambda data: data.update(observables=13), "the size of the channel does not match"),
}


def one_more(numerators: str) -> str:
    changed = bytearray(base64.b64decode(numerators))
    changed[0] ^= 1
    return base64.b64encode(changed).decode()


def test_a_tampered_module_with_a_new_digest_is_refused(city: Exported) -> None:
    assert Module(altered(source(city), lambda data: None)).verify()["holds"]
    for name, (change, reason) in CHANGES.items():
        found = Module(altered(source(city), change)).verify()
        assert not found["holds"], name
        assert reason in found["reason"], name


def test_lower_bounds_of_the_exponential() -> None:
    rng = np.random.default_rng(4)
    weights = np.concatenate([[0.0, 5e-324, 1e-30, 2.0**-60, 1.0, 61.9, 63.0, 1e300], rng.exponential(5, 40)])
    made = Module(source(random_case(rng)))
    for epsilon in (Fraction(1), Fraction(7, 10), Fraction(1, 3)):
        theirs = made.call("lower", str(epsilon.numerator), str(epsilon.denominator), weights.tolist())
        ours = exp_lower(epsilon, weights, EXPONENT)
        # Both are lower bounds, and differ by at most one unit of 2**-128.
        assert all(abs(int(one) - two) <= 1 for one, two in zip(theirs, ours.tolist(), strict=True))


def test_factors_that_are_ratios() -> None:
    class Ratios(Requirement):
        """p(o|0) <= 3/2 p(o|1) and back."""

        kind = "thirds"

        def stated(self) -> tuple[Stated, ...]:
            return (Stated.ratios("thirds", Fraction(3, 2), [(0, 1), (1, 0)], [1, 1], [1, 1]),)

        size = 2
        from_stated = classmethod(lambda cls, stated, secrets: cls())
        title = promise = lambda self, words: "thirds"

    third = TOTAL // 5
    for shift, holds in ((0, True), (2, False)):
        numerators = np.array([[2 * third - shift, TOTAL - 2 * third + shift], [3 * third, TOTAL - 3 * third]])
        problem = md.Problem([0.5, 0.5], np.eye(2), [Ratios()])
        made = exported(problem, numerators)
        assert made.certificate.holds is holds
        assert Module(source(made)).verify()["holds"] is holds


def small() -> Exported:
    domain = md.Domain.grid(2, 2, 2.0, 2.0)
    distance = md.distances.euclidean(domain)
    return exported(
        md.Problem([0.25] * 4, distance, [md.MetricPrivacy(1, distance)], secrets=domain, observables=domain),
        channel_like(np.exp(-distance / 2)),
    )


def code(made: Exported) -> str:
    """Return the module without its comments."""
    return re.sub(r"/\*.*?\*/|^\s*//.*$|; //.*$", "", source(made), flags=re.DOTALL | re.MULTILINE)


def test_the_module_avoids_the_power_operator():
    assert "**" not in code(small())
    continuous = md.Domain.anchors(3, 3, 2.0, 2.0)
    problem = md.Problem(
        [1 / 9] * 9,
        md.distances.euclidean(continuous),
        [md.ContinuousPrivacy(1, continuous)],
        secrets=continuous,
        observables=continuous,
    )
    assert "**" not in code(exported(problem, np.full((9, 9), TOTAL // 9) + np.eye(9, dtype=np.int64) * (TOTAL % 9)))


def test_a_missing_feature_is_an_exception_not_a_verdict() -> None:
    for missing in ("BigInt", "DataView", "Uint8Array"):
        module = Module(source(small()) + f"\ndelete globalThis.{missing};")
        with pytest.raises(RuntimeError, match=missing):
            module.verify()


def test_without_crypto_subtle_nothing_is_verified_but_answers_are_drawn() -> None:
    for missing in ("delete crypto.subtle;", "delete globalThis.crypto;"):
        module = Module(f"{source(small())}\n{missing}")
        with pytest.raises(RuntimeError, match=r"Error: crypto\.subtle is not available: open the page by https"):
            module.verify()
        assert module.draw({"x": 0.5, "y": 0.5}, bytes(8))
        with pytest.raises(RuntimeError, match=r"crypto\.getRandomValues is not available"):
            module.call("plain", {"x": 0.5, "y": 0.5})


def test_a_changed_label_border_or_probability_is_a_verdict() -> None:
    for classic in (False, True):
        text = source(small(), classic=classic)
        assert Module(text).verify()["holds"]
        for at in (r"\"secrets\":[\"", r"\"borders\":[[0.0,", r"\"numerators\":\""):
            place = text.index(at) + len(at)
            changed = Module(text[:place] + ("8" if text[place] != "8" else "9") + text[place + 1 :])
            found = changed.verify()
            assert found["reason"] == "the module was changed: its digest does not match its data", at
            assert found["holds"] is False, at
        # A damaged probability is refused by every answer, too.
        with pytest.raises(RuntimeError, match="of the channel does not sum to 1"):
            Module(text[:place] + ("8" if text[place] != "8" else "9") + text[place + 1 :]).draw(
                {"secret": 0}, bytes(8)
            )


def test_the_digest_is_that_of_the_data_and_said_to_readers() -> None:
    text = source(small())
    data = json.loads(re.findall(r'^const TEXT = (".*");$', text, re.MULTILINE)[0])
    assert Module(text).call("shown")["digest"] == hashlib.sha256(data.encode()).hexdigest()


def test_interchanged_coordinates_are_recognised() -> None:
    domain = md.Domain.geographic_grid(2, 2, south=45.7, north=45.8, west=4.8, east=4.9)
    distance = md.distances.euclidean(domain)
    problem = md.Problem([0.25] * 4, distance, [md.MetricPrivacy(1, distance)], secrets=domain, observables=domain)
    module = Module(source(exported(problem, channel_like(np.exp(-distance / 2)))))
    with pytest.raises(RuntimeError, match=r"from 45\.7 to 45\.8: lat and lon look interchanged"):
        module.call("plain", {"lat": 4.85, "lon": 45.75})
    with pytest.raises(RuntimeError, match="tell the user"):
        module.call("plain", {"lat": 4.85, "lon": 45.85})


def test_a_place_far_from_every_secret_learns_the_reach() -> None:
    domain = md.Domain.from_points(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]), unit="km")
    distance = md.distances.euclidean(domain)
    problem = md.Problem([0.5, 0.25, 0.25], distance, [md.MetricPrivacy(1, distance)], secrets=domain)
    module = Module(source(exported(problem, channel_like(np.exp(-distance / 2)))))
    with pytest.raises(RuntimeError, match="the place is more than 2 km from every secret: tell the user"):
        module.call("cell", {"x": 7.25, "y": 0.0}, {})
    with pytest.raises(RuntimeError, match="TypeError: the option reach is not known: options are outside"):
        module.call("cell", {"x": 7.25, "y": 0.0}, {"reach": 9})


def test_a_classic_script_answers_as_the_module_does(city: Exported) -> None:
    text = source(city, classic=True)
    assert "export " not in re.sub(r"^//.*$", "", text, flags=re.MULTILINE)
    module, script = Module(source(city)), Module(text)
    assert script.verify() == module.verify()
    assert script.call("shown") == module.call("shown")
    data = np.random.default_rng(3).bytes(80)
    place = {"lat": 35.68, "lon": 139.75}
    assert script.draw(place, data) == module.draw(place, data)
    with pytest.raises(RuntimeError, match="RangeError"):
        script.call("plain", {"lat": 0.0, "lon": 0.0})


def test_a_classic_script_defines_one_name_that_cannot_be_changed() -> None:
    engine = MiniRacer()
    before = set(json.loads(engine.eval("JSON.stringify(Object.getOwnPropertyNames(globalThis))")))
    engine.eval(source(small(), classic=True))
    after = set(json.loads(engine.eval("JSON.stringify(Object.getOwnPropertyNames(globalThis))")))
    assert after - before == {"mechdesign"}
    engine.eval("try { mechdesign.verify = () => ({ holds: true }); } catch (error) {}")
    # What `about` shows is what `sample` reads.
    labels = "mechdesign.about.labels.observables"
    engine.eval(f"{labels}[0] = 'x'")
    assert "x" not in json.loads(engine.eval(f"JSON.stringify({labels})"))
    assert engine.eval("Object.keys(mechdesign).join()") == "about,sample,cellOf,verify"
    assert engine.eval("mechdesign.about.title") == ""
    assert "async function" in engine.eval("String(mechdesign.verify)")


@pytest.mark.skipif(shutil.which("node") is None, reason="no Node on the path")
def test_node_loads_the_module_verifies_it_and_refuses_a_changed_label(city: Exported, tmp_path: Path) -> None:
    text = source(city)
    (tmp_path / "channel.mjs").write_text(text, encoding="utf-8")
    (tmp_path / "changed.mjs").write_text(text.replace(r"T\\u014dky\\u014d", r"T\\u014dky\\u0151"), encoding="utf-8")
    script = """
import * as module from "./channel.mjs";
import { verify } from "./changed.mjs";
const place = { lat: 35.68, lon: 139.75 };
const verdicts = [await module.verify(), await verify()];
console.log(JSON.stringify([Object.keys(module), verdicts, module.cellOf(place), module.sample(place).index]));
"""
    (tmp_path / "app.mjs").write_text(script, encoding="utf-8")
    found = subprocess.run(["node", "app.mjs"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    names, (good, bad), cell, index = json.loads(found.stdout)
    assert names == ["about", "cellOf", "sample", "verify"]
    assert good == Module(text).verify()
    assert bad["reason"] == "the module was changed: its digest does not match its data"
    assert city.problem.secrets is not None
    assert cell == city.problem.secrets.cell_of(35.68, 139.75)
    assert city.channel.numerators[cell, index] > 0
