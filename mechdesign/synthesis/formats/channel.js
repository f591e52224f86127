// A certified privacy mechanism in one file: exact sampling, and a check of every pair bound.
//
//   @LOAD@
//   if (!(await verify()).holds) throw new Error("this is not the channel that was certified");
//   const answer = sample({ lat: 35.68, lon: 139.75 });   // { index, label, lat, lon }
//
// p(o|s) = N[s][o] / 2^62 with the integers N below. Every answer spends the privacy budget again: k answers for one
// place spend k times the ε, so keep the answer for a place.
// Written by mechdesign @VERSION@. It needs BigInt, crypto.getRandomValues to sample, and crypto.subtle to verify.

const TEXT = @TEXT@;
const SHA256 = "@SHA256@";

// Frozen, since `about` shows parts of it to the app.
const DATA = JSON.parse(TEXT, (_, value) => Object.freeze(value));
const TWO_49 = 562949953421312;
const TWO_64 = 18446744073709551616;
const REMEDY = 'tell the user, or move it to the nearest place with the option outside: "nearest"';
const INTERCHANGED = "lat and lon look interchanged";
const SHIFT = 128n; // lower bounds of factors are multiples of 2^-128
let opened = null;

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
 * - random: a function that fills a Uint8Array with uniform random bytes; crypto.getRandomValues by default. Give one in
 *   tests only.
 * - outside: "refuse" or "nearest": see cellOf.
 *
 * Between anchors, one of the four anchors around the place is drawn with exactly its bilinear weight. Places outside are
 * refused or, with outside: "nearest", moved to the border first. */
export function sample(place, options = {}) {
  known(options, ["random", "outside"]);
  const { random = systemBytes, outside } = options;
  if (typeof random !== "function") throw new TypeError("random must be a function that fills a Uint8Array");
  const channel = open();
  const index = draw(channel, secretOf(place, outside, random), random);
  const answer = { index, label: DATA.labels.observables[index] };
  DATA.answers?.names.forEach((name, axis) => (answer[name] = DATA.answers.places[index][axis]));
  return answer;
}

/** Return the index of the secret of a place: its cell or, without cells, the nearest secret.
 *
 * A place outside is an error or, with outside: "nearest", is mapped to the nearest cell or secret. A place is outside if
 * it is beyond the grid, or in a cell that is not a secret. Without cells, it is outside if its distance to the nearest
 * secret exceeds the largest distance between nearest neighbours. */
export function cellOf(place, options = {}) {
  known(options, ["outside"]);
  one(place);
  if (DATA.axes === null) throw new RangeError("secrets have no places: give {secret: index}");
  if (DATA.lattice !== null) throw new RangeError("a place between anchors has no single secret: use sample");
  const refuse = refuses(options.outside);
  const at = coordinates(place).map((value, axis) => value + 360 * turns(value, axis));
  if (DATA.borders === null) return nearest(at, refuse ? DATA.limit : Infinity);
  let beyond = false;
  const found = at.map((value, axis) => {
    const side = DATA.borders[axis];
    const inside = side[0] <= value && value <= side[side.length - 1];
    if (refuse && !inside) throw isOutside(axis, "grid", at, DATA.borders);
    beyond ||= !inside;
    return side.slice(1, -1).filter((border) => border <= value).length;
  });
  // Cells are numbered row by row; latitude, or y, gives the row.
  const [row, column] = DATA.degrees ? found : found.reverse();
  const cell = row * (DATA.borders[DATA.degrees ? 1 : 0].length - 1) + column;
  if (DATA.members === null) return cell;
  if (!beyond && DATA.members[cell] >= 0) return DATA.members[cell];
  if (refuse) throw new RangeError(`the place is in a cell that is not a secret: ${REMEDY}`);
  return nearest(at, Infinity);
}

/** Check the digest of the data, the sums of the rows, and every bound p(o|s) <= g p(o|t) in exact integers.
 *
 * A bound between all points is checked by the slopes at the anchors, also in exact integers.
 *
 * Returns a promise of {holds, reason, requirements: [{name, claim, holds, reason}], revealed}. holds is null for a
 * requirement that does not bound pairs of secrets; only `mechdesign verify` checks it. `revealed` lists the secrets with
 * an answer that no other secret gives: anyone who sees this answer knows the secret. Without crypto.subtle, which
 * browsers have on https, on localhost and in files, the promise is rejected. */
export async function verify() {
  const digest = await sha256(TEXT);
  const reason = digest === SHA256 ? damage() : "the module was changed: its digest does not match its data";
  if (reason !== "") return { holds: false, reason, requirements: [], revealed: [] };
  const channel = opened;
  const requirements = DATA.requirements.map(({ name, claim, bound }) => {
    const reason = bound === null ? "" : (bound.norm === undefined ? violation : slope)(channel, bound);
    return { name, claim, holds: bound === null ? null : reason === "", reason };
  });
  const broken = requirements.find((each) => each.holds === false);
  return { holds: broken === undefined, reason: broken?.reason ?? "", requirements, revealed: revealed(channel) };
}

async function sha256(text) {
  const subtle = globalThis.crypto?.subtle;
  if (subtle === undefined) throw new Error("crypto.subtle is not available: open the page by https or from a file");
  const digest = await subtle.digest("SHA-256", bytesOf(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function revealed(channel) {
  const [n, m] = [DATA.secrets, DATA.observables].map((size) => [...Array(size).keys()]);
  const givers = m.map((o) => n.filter((s) => channel[s * m.length + o] > 0n));
  return [...new Set(givers.filter((each) => each.length === 1).flat())].sort((a, b) => a - b);
}

// Return a lower bound of exp(numerator/denominator · weight), at least 1, as a BigInt multiple of 2^-128.
//
// The weight is a float64, taken exactly. All terms of the series are positive, and each step rounds down, so the result
// never exceeds the true value. Bounds beyond 2^62 are capped there: they only require that p(o|s) is 0 if p(o|t) is.
function expBelow(numerator, denominator, weight) {
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

// Return a description of a damaged channel, or "", and decode the channel. Missing features of the JavaScript engine
// still raise their exceptions.
function damage() {
  if (opened !== null) return "";
  const [n, m] = [DATA.secrets, DATA.observables];
  const numerators = integers(DATA.numerators, 8);
  if (numerators.length !== n * m) return "the size of the channel does not match its numbers of secrets and answers";
  for (let s = 0; s < n; s++) {
    const sum = numerators.slice(s * m, (s + 1) * m).reduce((x, y) => x + y, 0n);
    if (sum !== 1n << 62n) return `row ${s} of the channel does not sum to 1`;
  }
  opened = numerators;
  return "";
}

// The operator ** is avoided: compilers for older engines turn it into Math.pow, which does not accept BigInt.
function square(value) {
  return value * value;
}

// Return the answer that 62 uniform bits select with exactly its probability.
function draw(channel, secret, random) {
  let left = bits(random);
  let o = -1;
  while (left >= 0n) left -= channel[secret * DATA.observables + ++o];
  return o;
}

function bits(random) {
  return new DataView(filled(random).buffer).getBigUint64(0, true) >> 2n;
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
function dither(place, outside, random) {
  const refuse = refuses(outside);
  const values = coordinates(place);
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
  if (globalThis.crypto?.getRandomValues === undefined)
    throw new Error("crypto.getRandomValues is not available: give options.random, from a secure source");
  crypto.getRandomValues(bytes);
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

function secretOf(place, outside, random) {
  one(place);
  if (!("secret" in place)) return DATA.lattice === null ? cellOf(place, { outside }) : dither(place, outside, random);
  if (outside !== undefined) throw new TypeError("outside applies to places, not to secrets");
  const index = typeof place.secret === "string" ? DATA.labels.secrets.indexOf(place.secret) : place.secret;
  if (!Number.isInteger(index) || index < 0 || index >= DATA.secrets)
    throw new RangeError(`the secret is not known: give a label, or an index from 0 to ${DATA.secrets - 1}`);
  return index;
}

function coordinates(place) {
  return DATA.axes.map((name, axis) => {
    const value = place[name];
    if (value === undefined) throw new TypeError(`${name} is missing: give {${DATA.axes.join(", ")}}`);
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

function refuses(outside = "refuse") {
  if (outside !== "refuse" && outside !== "nearest") throw new RangeError('outside must be "refuse" or "nearest"');
  return outside === "refuse";
}

// Return the square of the distance or, for degrees, sin²(d / 2R) for the distance d on the globe.
function spread([first, second], [a, b]) {
  if (!DATA.degrees) return square(a - first) + square(b - second);
  const radians = (degrees) => degrees * (Math.PI / 180);
  const across = square(Math.sin(radians(b - second) / 2));
  return square(Math.sin(radians(a - first) / 2)) + Math.cos(radians(a)) * Math.cos(radians(first)) * across;
}

function nearest(at, limit) {
  const apart = DATA.places.map((place) => spread(at, place));
  const best = apart.reduce((found, each, index) => (each < apart[found] ? index : found), 0);
  if (apart[best] <= limit) return best;
  const distance = `${Number(DATA.reach.toPrecision(4))} ${DATA.unit}`.trim();
  throw new RangeError(`the place is more than ${distance} from every secret: ${REMEDY}`);
}

// Return a description of the first violated bound, or "" if all hold. The worst violation is not searched for.
function violation(channel, bound) {
  const [n, m] = [DATA.secrets, DATA.observables];
  const [top, bottom] = (bound.epsilon ?? bound.factor).map(BigInt);
  const factors = bound.terms.map((term) => {
    if (typeof term === "number") return [expBelow(top, bottom, term), 1n << SHIFT];
    return [top * BigInt(term[0]), bottom * BigInt(term[1])];
  });
  // Five roundings by at most 2^-53 each cannot exceed the factor 1 - 2^-49, so a bound that holds in floats is met.
  // Integers decide all other bounds.
  const sure = factors.map(([above, below]) => (Number((above << 64n) / below) / TWO_64) * (1 - 1 / TWO_49));
  const floats = Float64Array.from(channel, Number);
  const places = integers(bound.places, bound.width);
  const pairs = bound.pairs === null ? null : integers(bound.pairs, 4);
  const count = pairs === null ? n * (n - 1) : pairs.length / 2;
  if (places.length !== count) return "a bound does not state one factor for each pair";
  for (let at = 0; at < count; at++) {
    // Without a list, the pairs are all those of different secrets, row by row.
    const s = pairs === null ? Math.floor(at / (n - 1)) : pairs[2 * at];
    const t = pairs === null ? (at % (n - 1)) + (at % (n - 1) >= s ? 1 : 0) : pairs[2 * at + 1];
    if (s >= n || t >= n) return "a bound names a secret that does not exist";
    const [above, below] = factors[places[at]];
    const most = sure[places[at]];
    for (let o = 0; o < m; o++) {
      if (floats[s * m + o] <= most * floats[t * m + o]) continue;
      if (channel[s * m + o] * below > above * channel[t * m + o])
        return `p(${o} | ${s}) exceeds its bound by p(${o} | ${t})`;
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
      const most = e * a * c * own;
      const kept = norm === 2 ? square(f) * (square(x) + square(y)) <= square(most) : f * dual <= most;
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

function bytesOf(text) {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

// Decode unsigned little-endian integers of `width` bytes from base64.
function integers(text, width) {
  const view = new DataView(bytesOf(atob(text)).buffer);
  const read = { 1: "getUint8", 2: "getUint16", 4: "getUint32", 8: "getBigUint64" }[width];
  return Array.from({ length: view.byteLength / width }, (_, i) => view[read](width * i, true));
}
