// A certified privacy mechanism in one file: exact sampling, and a check of every pair bound.
//
//   @LOAD@
//   if (!verify().holds) throw new Error("this is not the channel that was certified");
//   const answer = sample({ lat: 35.68, lon: 139.75 });   // { index, label, lat, lon }
//
// p(o|s) = N[s][o] / 2^62 with the integers N below. Every new answer spends the privacy budget again: k answers for one
// place spend k times the ε. most() returns the largest k so far.
// Written by mechdesign @VERSION@. It needs BigInt, and crypto unless options.random is given.

const TEXT = @TEXT@;
const SHA256 = "@SHA256@";

const DATA = JSON.parse(TEXT);
const EARTH_KM = 6371.0088; // the mean radius
const TWO_49 = 562949953421312;
const TWO_64 = 18446744073709551616;
const REMEDY = 'tell the user, or move it to the nearest place with the option outside: "nearest"';
const INTERCHANGED = "lat and lon look interchanged";
const SHIFT = 128n; // lower bounds of factors are multiples of 2^-128
let opened = null;
const remembered = new Map();
const drawnFor = new Map();
let largest = 0;

/** The number of answers that sample has drawn since the module was loaded; each one has spent the budget once. */
export let count = 0;

/** Return the largest number of answers that sample has drawn for one place since the module was loaded.
 *
 * k answers for one place spend k times the ε. A place is one cell or secret or, between anchors, one pair of
 * coordinates. Remembered answers are not counted again. The number depends on the user's visits: never send it to
 * anyone else. */
export function most() {
  return largest;
}

/** The content of the module, for readers: title, digest of the data, sizes, labels, places, and claims. */
export const about = Object.freeze({
  title: DATA.title,
  digest: SHA256,
  secrets: DATA.secrets,
  observables: DATA.observables,
  labels: DATA.labels,
  answers: DATA.answers,
  requirements: DATA.requirements.map(({ name, claim }) => ({ name, claim })),
});

/** Draw an answer for a place, {lat, lon} or {x, y}, or for a secret, {secret: index or label}.
 *
 * Options:
 * - random: a function that fills a Uint8Array with uniform random bytes; crypto.getRandomValues by default. Give another
 *   one in tests only.
 * - outside: "refuse" or "nearest", and reach: see cellOf.
 * - remember: if true, return the remembered answer for the same cell or secret, or draw one and remember it until
 *   forget(). Equal answers then reveal that the cell is the same.
 *
 * Between anchors, one of the four anchors around the place is drawn with exactly its bilinear weight, and nothing can be
 * remembered. Places outside are refused or, with outside: "nearest", moved to the border first. */
export function sample(place, options = {}) {
  known(options, ["random", "outside", "reach", "remember"]);
  const random = options.random ?? systemBytes;
  const remember = options.remember ?? false;
  if (typeof random !== "function") throw new TypeError("random must be a function that fills a Uint8Array");
  if (typeof remember !== "boolean") throw new TypeError("remember must be true or false");
  if (remember && DATA.lattice !== null)
    throw new RangeError("remember: a place between anchors has no cell; keep its answer yourself");
  const secret = secretOf(place, { outside: options.outside, reach: options.reach }, random);
  if (remember && remembered.has(secret)) return answer(remembered.get(secret));
  const drawn = draw(secret, random);
  count += 1;
  const key = DATA.lattice === null || "secret" in place ? secret : String(DATA.axes.map((name) => place[name]));
  drawnFor.set(key, (drawnFor.get(key) ?? 0) + 1);
  largest = Math.max(largest, drawnFor.get(key));
  if (remember) remembered.set(secret, drawn);
  return answer(drawn);
}

/** Forget all remembered answers. The next answer for each cell is drawn again, and spends the budget again. */
export function forget() {
  remembered.clear();
}

/** Return the index of the secret of a place: its cell or, without cells, the nearest secret.
 *
 * A place outside is an error or, with outside: "nearest", is mapped to the nearest cell or secret. A place is outside if
 * it is beyond the grid, or in a cell that is not a secret. Without cells, it is outside if its distance to the nearest
 * secret exceeds `reach`, in the unit of the places (km for lat and lon). By default, `reach` is the largest distance
 * between nearest neighbours. */
export function cellOf(place, options = {}) {
  known(options, ["outside", "reach"]);
  one(place);
  const { outside = "refuse", reach = null } = options;
  if (DATA.axes === null) throw new RangeError("secrets have no places: give {secret: index}");
  if (DATA.lattice !== null) throw new RangeError("a place between anchors has no single secret: use sample");
  const refuse = refuses(outside);
  const at = coordinates(place, DATA.axes).map((value, axis) => value + 360 * turns(value, axis));
  if (DATA.borders === null) return nearest(at, limitOf(reach, refuse), reach ?? DATA.reach);
  noReach(reach);
  let beyond = false;
  const [row, column] = at.map((value, axis) => {
    const side = DATA.borders[axis];
    const last = side.length - 1;
    if (side[0] <= value && value <= side[last]) return interval(value, side);
    if (refuse) throw isOutside(axis, "grid", at, DATA.borders);
    beyond = true;
    return interval(value, side);
  });
  const cell = DATA.degrees
    ? row * (DATA.borders[1].length - 1) + column
    : column * (DATA.borders[0].length - 1) + row;
  if (DATA.members === null) return cell;
  if (!beyond && DATA.members[cell] >= 0) return DATA.members[cell];
  if (refuse) throw new RangeError(`the place is in a cell that is not a secret: ${REMEDY}`);
  return nearest(at, Infinity);
}

/** Check the digest of the data, the sums of the rows, and every bound p(o|s) <= g p(o|t) in exact integers.
 *
 * A bound between all points is checked by the slopes at the anchors, also in exact integers.
 *
 * Returns {holds, reason, requirements: [{name, claim, holds, reason}], revealed}. holds is null for a requirement that
 * does not bound pairs of secrets; only `mechdesign verify` checks it. `revealed` lists the secrets with an answer that
 * no other secret gives: anyone who sees this answer knows the secret. */
export function verify() {
  const reason = damage();
  if (reason !== "") return { holds: false, reason, requirements: [], revealed: [] };
  const channel = opened;
  const requirements = DATA.requirements.map((each) => {
    const reason = each.bound === null ? "" : (each.bound.norm === undefined ? violation : slope)(channel, each.bound);
    return { name: each.name, claim: each.claim, holds: each.bound === null ? null : reason === "", reason };
  });
  const broken = requirements.find((each) => each.holds === false);
  return { holds: broken === undefined, reason: broken?.reason ?? "", requirements, revealed: revealed(channel) };
}

function revealed(channel) {
  const found = new Set();
  for (let o = 0; o < DATA.observables; o++) {
    let givers = 0;
    let giver = -1;
    for (let s = 0; s < DATA.secrets && givers < 2; s++) {
      if (channel[s * DATA.observables + o] > 0n) {
        givers += 1;
        giver = s;
      }
    }
    if (givers === 1) found.add(giver);
  }
  return [...found].sort((a, b) => a - b);
}

/** Return a lower bound of exp(numerator/denominator · weight), at least 1, as a BigInt multiple of 2^-128.
 *
 * The weight is a float64, taken exactly. All terms of the series are positive, and each step rounds down, so the result
 * never exceeds the true value. Bounds beyond 2^62 are capped there: they only require that p(o|s) is 0 if p(o|t) is. */
export function expBelow(numerator, denominator, weight) {
  const cap = 1n << (SHIFT + 62n);
  const [top, bottom] = fraction(weight);
  const places = 384n;
  const power = ((numerator * top) << places) / (denominator * bottom);
  if (power >> places >= 44n) return cap; // e^44 > 2^62
  const halvings = 8n;
  const small = power >> halvings;
  let sum = 1n << places;
  for (let term = sum, i = 1n; term > 0n; i += 1n) {
    term = (term * small) / (i << places);
    sum += term;
  }
  for (let i = 0n; i < halvings; i += 1n) sum = (sum * sum) >> places;
  const bound = sum >> (places - SHIFT);
  return bound < cap ? bound : cap;
}

function open() {
  const reason = damage();
  if (reason !== "") throw new Error(reason);
  return opened;
}

// Return a description of damaged data, or "" if the data are intact, and decode the channel. Missing features of the
// JavaScript engine still raise their exceptions.
function damage() {
  if (opened !== null) return "";
  if (sha256(TEXT) !== SHA256) return "the module was changed: its digest does not match its data";
  const n = DATA.secrets;
  const m = DATA.observables;
  const numerators = integers(DATA.numerators, 8);
  if (numerators.length !== n * m) return "the size of the channel does not match its numbers of secrets and answers";
  for (let s = 0; s < n; s++) {
    let sum = 0n;
    for (let o = 0; o < m; o++) sum += numerators[s * m + o];
    if (sum !== 1n << 62n) return `row ${s} of the channel does not sum to 1`;
  }
  opened = numerators;
  return "";
}

// The operator ** is avoided: compilers for older engines turn it into Math.pow, which does not accept BigInt.
function square(value) {
  return value * value;
}

function draw(secret, random) {
  const channel = open();
  const m = DATA.observables;
  // 62 uniform bits select each answer with exactly its probability.
  let left = bits(random);
  for (let o = 0; o < m; o++) {
    left -= channel[secret * m + o];
    if (left < 0n) return o;
  }
  throw new Error("a row of the channel does not sum to 1");
}

function bits(random) {
  const bytes = filled(random);
  let word = 0n;
  for (let i = 7; i >= 0; i--) word = (word << 8n) | BigInt(bytes[i]);
  return word >> 2n;
}

// Return eight random bytes. All zeros may be chance, or a function that fills nothing: a second array of ones decides.
function filled(random) {
  const bytes = new Uint8Array(8);
  random(bytes);
  if (bytes.some((byte) => byte !== 0)) return bytes;
  const ones = new Uint8Array(8).fill(255);
  random(ones);
  if (ones.every((byte) => byte === 255)) throw new Error("random did not fill the given bytes");
  return bytes;
}

// Draw an anchor around a place with exactly its bilinear weight. Along each axis, the probability of the next anchor is
// the share of the distance to it.
function dither(place, { outside = "refuse", reach = null }, random) {
  noReach(reach);
  const refuse = refuses(outside);
  const values = coordinates(place, DATA.axes);
  const sides = DATA.lattice.map(({ ends }) => ends);
  const [column, row] = (DATA.degrees ? [1, 0] : [0, 1]).map((axis) => {
    const { start, length, count, ends } = DATA.lattice[axis];
    const turn = turns(values[axis], axis);
    const value = values[axis] + 360 * turn;
    const [exact, bottom] = fraction(values[axis]);
    const top = exact + 360n * BigInt(turn) * bottom;
    // (value - start) / length · (count - 1) = numerator / denominator
    const from = top * BigInt(start[1]) - BigInt(start[0]) * bottom;
    const steps = BigInt(count - 1);
    let numerator = from * BigInt(length[1]) * steps;
    const denominator = bottom * BigInt(start[1]) * BigInt(length[0]);
    if (refuse && !(ends[0] <= value && value <= ends[1])) throw isOutside(axis, "anchors", values, sides);
    if (numerator < 0n) numerator = 0n;
    if (numerator > denominator * steps) numerator = denominator * steps;
    let cell = numerator / denominator;
    if (cell > steps - 1n) cell = steps - 1n;
    return Number(cell) + (chance(numerator - cell * denominator, denominator, random) ? 1 : 0);
  });
  return row * DATA.lattice[DATA.degrees ? 1 : 0].count + column;
}

// Return true with probability exactly top/bottom: uniform bits are compared with its digits until they differ.
function chance(top, bottom, random) {
  for (;;) {
    const digit = (top << 62n) / bottom;
    const drawn = bits(random);
    if (drawn !== digit) return drawn < digit;
    top = (top << 62n) - digit * bottom;
    if (top === 0n) return false;
  }
}

function systemBytes(bytes) {
  if (typeof crypto === "undefined" || crypto.getRandomValues === undefined)
    throw new Error("crypto.getRandomValues is not available: give options.random, from a secure source");
  crypto.getRandomValues(bytes);
}

function answer(index) {
  const found = { index, label: DATA.labels.observables[index] };
  if (DATA.answers !== null) [found[DATA.answers.names[0]], found[DATA.answers.names[1]]] = DATA.answers.places[index];
  return found;
}

// Refuse unknown options, so that misspelt names are not ignored.
function known(options, names) {
  if (options === null || typeof options !== "object") throw new TypeError("options must be an object");
  for (const name of Object.keys(options))
    if (!names.includes(name)) throw new TypeError(`the option ${name} is not known: options are ${names.join(", ")}`);
}

// Refuse a place that is given in more than one form.
function one(place) {
  if (place === null || typeof place !== "object") throw new TypeError("give {lat, lon}, {x, y} or {secret}");
  const ways = [["lat", "lon"], ["x", "y"], ["secret"]].filter((way) => way.some((name) => name in place));
  if (ways.length > 1) throw new TypeError("give only one of {lat, lon}, {x, y} and {secret}");
}

function secretOf(place, options, random) {
  one(place);
  if (!("secret" in place))
    return DATA.lattice === null ? cellOf(place, options) : dither(place, options, random);
  if (options.outside !== undefined || options.reach !== undefined)
    throw new TypeError("outside and reach apply to places, not to secrets");
  const index = typeof place.secret === "string" ? DATA.labels.secrets.indexOf(place.secret) : place.secret;
  if (!Number.isInteger(index) || index < 0 || index >= DATA.secrets)
    throw new RangeError(`the secret is not known: give a label, or an index from 0 to ${DATA.secrets - 1}`);
  return index;
}

function coordinates(place, axes) {
  return axes.map((name, axis) => {
    const value = place?.[name];
    if (value === undefined) throw new TypeError(`${name} is missing: give {${axes.join(", ")}}`);
    if (typeof value !== "number" || !Number.isFinite(value)) throw new TypeError(`${name} must be a finite number`);
    const limit = DATA.degrees ? [90, 180][axis] : Infinity;
    const hint = name === "lat" && Math.abs(value) <= 180 ? `: ${INTERCHANGED}` : "";
    if (Math.abs(value) > limit) throw new RangeError(`${name} must be between -${limit} and ${limit} degrees${hint}`);
    return value;
  });
}

// Return 1 if 360 degrees must be added to a longitude because the secrets lie across the 180th meridian, or else 0.
function turns(value, axis) {
  return DATA.degrees && axis === 1 && DATA.turn !== null && value < DATA.turn ? 1 : 0;
}

// Return the error about a place outside. It does not name the coordinates, since apps send errors to servers.
function isOutside(axis, region, values, sides) {
  const ends = sides.map((side) => [side[0], side[side.length - 1]]);
  const swapped = DATA.degrees && ends.every(([from, to], each) => from <= values[1 - each] && values[1 - each] <= to);
  const [from, to] = ends[axis];
  const remedy = swapped ? INTERCHANGED : REMEDY;
  return new RangeError(`${DATA.axes[axis]} is outside the ${region}, from ${from} to ${to}: ${remedy}`);
}

function interval(value, borders) {
  let index = 0;
  while (index < borders.length - 2 && borders[index + 1] <= value) index++;
  return index;
}

function refuses(outside) {
  if (outside !== "refuse" && outside !== "nearest") throw new RangeError('outside must be "refuse" or "nearest"');
  return outside === "refuse";
}

function noReach(reach) {
  if (reach !== null) throw new RangeError("reach applies only to places without a grid or anchors: leave it out");
}

// Return the largest accepted distance to the nearest secret, in the measure of spread.
function limitOf(reach, refuse) {
  if (reach !== null && !(typeof reach === "number" && reach >= 0 && reach < Infinity))
    throw new RangeError("reach must be a finite number >= 0");
  if (!refuse) return Infinity;
  if (reach === null && DATA.reach === null)
    throw new RangeError("reach must be given: all secrets are at the same place");
  // Rounding errors may increase a distance that equals the reach.
  const length = (reach ?? DATA.reach) * (1 + 1e-9) + DATA.margin;
  return DATA.degrees ? square(Math.sin(Math.min(length / (2 * EARTH_KM), Math.PI / 2))) : square(length);
}

// Return the square of the distance or, for degrees, sin²(d / 2R) for the distance d on the globe.
function spread([first, second], [a, b]) {
  if (!DATA.degrees) return square(a - first) + square(b - second);
  const radians = (degrees) => degrees * (Math.PI / 180);
  const across = square(Math.sin(radians(b - second) / 2));
  return square(Math.sin(radians(a - first) / 2)) + Math.cos(radians(a)) * Math.cos(radians(first)) * across;
}

function nearest(at, limit, reach) {
  let best = 0;
  let least = Infinity;
  DATA.places.forEach((place, index) => {
    const apart = spread(at, place);
    if (apart < least) [best, least] = [index, apart];
  });
  if (least > limit) {
    const distance = `${Number(reach.toPrecision(4))} ${DATA.unit}`.trim();
    throw new RangeError(`the place is more than ${distance} from every secret: ${REMEDY}`);
  }
  return best;
}

// Return a description of the first violated bound, or "" if all hold. The worst violation is not searched for.
function violation(channel, bound) {
  const n = DATA.secrets;
  const m = DATA.observables;
  const tops = bound.terms.map((term) =>
    typeof term === "number"
      ? expBelow(BigInt(bound.epsilon[0]), BigInt(bound.epsilon[1]), term)
      : BigInt(bound.factor[0]) * BigInt(term[0]),
  );
  const bottoms = bound.terms.map((term) =>
    typeof term === "number" ? 1n << SHIFT : BigInt(bound.factor[1]) * BigInt(term[1]),
  );
  // Five roundings by at most 2^-53 each cannot exceed the factor 1 - 2^-49, so a bound that holds in floats is met.
  // Integers decide all other bounds.
  const sure = tops.map((top, i) => (Number((top << 64n) / bottoms[i]) / TWO_64) * (1 - 1 / TWO_49));
  const floats = Float64Array.from(channel, Number);
  const places = integers(bound.places, bound.width);
  const pairs = bound.pairs === null ? null : integers(bound.pairs, 4);
  let at = 0;
  for (let s = 0; s < n || pairs !== null; s++) {
    for (let t = 0; t < n || pairs !== null; t++) {
      if (pairs !== null) {
        if (at === places.length) return "";
        [s, t] = [Number(pairs[2 * at]), Number(pairs[2 * at + 1])];
        if (s >= n || t >= n) return "a bound names a secret that does not exist";
      } else if (s === t) continue;
      const i = Number(places[at++]);
      for (let o = 0; o < m; o++) {
        if (floats[s * m + o] <= sure[i] * floats[t * m + o]) continue;
        if (channel[s * m + o] * bottoms[i] > tops[i] * channel[t * m + o])
          return `p(${o} | ${s}) exceeds its bound by p(${o} | ${t})`;
      }
    }
  }
  return "";
}

// Return the first anchor at which p(o|x), bilinear between anchors, changes faster than exp(ε·d), or "". The slopes are
// the differences to the neighbours along x and y.
function slope(channel, { norm, epsilon, steps, columns, rows }) {
  const m = DATA.observables;
  const [[a, b], [c, d], [e, f]] = [...steps, epsilon].map((pair) => pair.map(BigInt));
  const size = (value) => (value < 0n ? -value : value);
  for (let place = 0; place < columns * rows; place++) {
    const [row, column] = [Math.floor(place / columns), place % columns];
    for (let o = 0; o < m; o++) {
      const own = channel[place * m + o];
      const largest = (others) =>
        others.map((other) => size(channel[other * m + o] - own)).reduce((x, y) => (x > y ? x : y));
      const along = [-1, 1].filter((step) => 0 <= column + step && column + step < columns).map((step) => place + step);
      const up = [-1, 1].filter((step) => 0 <= row + step && row + step < rows).map((step) => place + step * columns);
      // Slopes times a·c·own: differences over the steps a/b and c/d.
      const [x, y] = [largest(along) * b * c, largest(up) * d * a];
      const dual = norm === 1 ? (x > y ? x : y) : x + y;
      const kept = norm === 2 ? square(f) * (square(x) + square(y)) <= square(e * a * c * own) : f * dual <= e * a * c * own;
      if (!kept) return `p(${o} | x) changes too fast at anchor ${place}`;
    }
  }
  return "";
}

function fraction(number) {
  let denominator = 1n;
  let numerator = number;
  while (!Number.isInteger(numerator)) {
    numerator *= 2;
    denominator *= 2n;
  }
  return [BigInt(numerator), denominator];
}

// Decode unsigned little-endian integers of `width` bytes from base64.
function integers(text, width) {
  const bytes = base64(text);
  const view = new DataView(bytes.buffer);
  const count = bytes.length / width;
  if (width === 8)
    return Array.from(
      { length: count },
      (_, i) => (BigInt(view.getUint32(8 * i + 4, true)) << 32n) | BigInt(view.getUint32(8 * i, true)),
    );
  const read = { 1: "getUint8", 2: "getUint16", 4: "getUint32" }[width];
  return Uint32Array.from({ length: count }, (_, i) => view[read](width * i, true));
}

function base64(text) {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const values = new Uint8Array(128);
  for (let i = 0; i < 64; i++) values[letters.charCodeAt(i)] = i;
  const end = text.length - (text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0);
  const bytes = new Uint8Array(Math.floor((end * 3) / 4));
  let bits = 0;
  for (let i = 0, out = 0; i < end; i++) {
    bits = (bits << 6) | values[text.charCodeAt(i)];
    if (i % 4 !== 0) bytes[out++] = (bits >> (6 - 2 * (i % 4))) & 255;
    bits &= 0xffff;
  }
  return bytes;
}

// Return the SHA-256 of an ASCII text in hexadecimal digits (FIPS 180-4).
function sha256(text) {
  const [constants, state] = tables();
  const size = (text.length + 72) & ~63;
  const padded = new Uint8Array(size);
  for (let i = 0; i < text.length; i++) padded[i] = text.charCodeAt(i);
  padded[text.length] = 128;
  const view = new DataView(padded.buffer);
  // The length in bits, 64 bits long.
  view.setUint32(size - 8, Math.floor(text.length / 0x20000000));
  view.setUint32(size - 4, (text.length << 3) >>> 0);
  const turn = (x, by) => (x >>> by) | (x << (32 - by));
  const w = new Uint32Array(64);
  for (let start = 0; start < size; start += 64) {
    for (let i = 0; i < 16; i++) w[i] = view.getUint32(start + 4 * i);
    for (let i = 16; i < 64; i++) {
      const s0 = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ (w[i - 15] >>> 3);
      const s1 = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ (w[i - 2] >>> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 64; i++) {
      const up = (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + h + constants[i] + w[i];
      const down = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + up) | 0, c, b, a, (up + down) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((value, i) => (state[i] += value));
  }
  return Array.from(state, (word) => word.toString(16).padStart(8, "0")).join("");
}

// Return the constants of SHA-256: the first 32 bits of the fractional parts of cube and square roots of primes.
function tables() {
  const primes = [];
  for (let p = 2n; primes.length < 64; p += 1n) if (primes.every((q) => p % q !== 0n)) primes.push(p);
  const root = (value, degree) => {
    let [low, high] = [0n, 1n << 40n];
    while (high - low > 1n) {
      const middle = (low + high) >> 1n;
      let power = 1n;
      for (let i = 0; i < degree; i++) power *= middle;
      if (power <= value) low = middle;
      else high = middle;
    }
    return Number(low & 0xffffffffn);
  };
  const constants = Uint32Array.from(primes, (p) => root(p << 96n, 3));
  return [constants, Uint32Array.from(primes.slice(0, 8), (p) => root(p << 64n, 2))];
}
