"use strict";
// Makes the maps of a report interactive: values under the pointer, keyboard control, and one secret at a time. Loads nothing.

const SVG = "http://www.w3.org/2000/svg";

/** Decode numbers of three digits, encoded by mechdesign.report._explorer.encode_numbers. */
function decode(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Float64Array.from({ length: bytes.byteLength / 2 }, (_, index) => {
    const code = view.getUint16(2 * index, true);
    return code === 0 ? 0 : (100 + ((code - 1) % 900)) / 10 ** (2 + Math.floor((code - 1) / 900));
  });
}

function percent(value) {
  if (value === 0) return "0%";
  const digits = value < 0.995 ? 2 : 3;
  if (value >= 1e-5) return `${Number((100 * value).toPrecision(digits))}%`;
  const [digit, exponent] = (100 * value).toExponential(0).split("e");
  if (exponent === "-3") return "0.001%";
  const raised = [...String(Number(exponent))].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]).join("");
  return `${digit === "1" ? "" : `${digit}×`}10${raised}%`;
}

function written(value, unit) {
  if (value === null) return "none";
  return unit === "%" ? percent(value) : `${Number(value.toPrecision(3))}${unit ? ` ${unit}` : ""}`;
}

/** Return the name of a member, as mechdesign.report._explorer.name_of does. */
function named(view, index) {
  if (view.names) return view.names[index];
  return `${view.word}${index}`;
}

function place(view, index) {
  if (view.degrees) {
    const [latitude, longitude] = view.degrees[index];
    const north = `${Math.abs(latitude).toFixed(4)}°${latitude < 0 ? "S" : "N"}`;
    return `${north} ${Math.abs(longitude).toFixed(4)}°${longitude < 0 ? "W" : "E"}`;
  }
  if (!view.centres) return "";
  const unit = view.unit ? ` ${view.unit}` : "";
  return view.centres[index].map((value) => Number(value.toPrecision(4))).join(", ") + unit;
}

/** Return the member at a position in the box, which is 1000 units wide. */
function memberAt(view, x, y) {
  if (view.form === "grid") {
    const [columns, rows] = view.cells;
    const column = Math.min(columns - 1, Math.max(0, Math.floor((x / 1000) * columns)));
    const row = rows - 1 - Math.min(rows - 1, Math.max(0, Math.floor((y / view.height) * rows)));
    return row * columns + column;
  }
  let best = 0;
  let least = Infinity;
  view.places.forEach(([px, py], index) => {
    const apart = view.form === "bars" ? Math.abs(px - x) : (px - x) ** 2 + (py - y) ** 2;
    if (apart < least) [best, least] = [index, apart];
  });
  return best;
}

/** Return the nearest member in the direction of an arrow key. */
function neighbour(view, index, key) {
  const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[key];
  if (view.form === "grid") {
    const [columns, rows] = view.cells;
    const column = Math.min(columns - 1, Math.max(0, (index % columns) + step[0]));
    const row = Math.min(rows - 1, Math.max(0, Math.floor(index / columns) + step[1]));
    return row * columns + column;
  }
  const [x, y] = view.places[index];
  let best = index;
  let least = Infinity;
  view.places.forEach(([px, py], other) => {
    const along = view.form === "bars" ? (px - x) * (step[0] + step[1]) : (px - x) * step[0] - (py - y) * step[1];
    const apart = Math.hypot(px - x, view.form === "bars" ? 0 : py - y);
    // The nearest member within 45 degrees of the arrow.
    if (along > 0.7 * apart && apart > 0 && apart < least) [best, least] = [other, apart];
  });
  return best;
}

function level(scale, value) {
  const part = scale.log
    ? Math.log(Math.max(value, scale.low) / scale.low) / (Math.log(scale.top / scale.low) || 1)
    : (value - scale.low) / (scale.top - scale.low);
  return Math.min(scale.levels - 1, Math.max(0, Math.floor(part * scale.levels)));
}

/** Return row s of the mean beliefs: the sum over answers o of p(o|s) Pr(t|o). */
function believed(channel, prior, answers, secret) {
  const row = channel.subarray(secret * answers, (secret + 1) * answers);
  const found = new Float64Array(prior.length);
  for (let o = 0; o < answers; o++) {
    if (row[o] === 0) continue;
    let total = 0;
    for (let t = 0; t < prior.length; t++) total += prior[t] * channel[t * answers + o];
    for (let t = 0; t < prior.length; t++) {
      found[t] += row[o] * (total > 0 ? (prior[t] * channel[t * answers + o]) / total : prior[t]);
    }
  }
  return found;
}

function element(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/** Return the transformation from the box of a view to the frame of a figure. */
function fitted(picture, view) {
  const numbers = picture.querySelector(".box").getAttribute("d").match(/-?[\d.]+/g).map(Number);
  const [x, y] = [0, 1].map((first) => numbers.filter((_, index) => index % 2 === first));
  const [left, top] = [Math.min(...x), Math.min(...y)];
  return `translate(${left} ${top}) scale(${(Math.max(...x) - left) / 1000} ${(Math.max(...y) - top) / view.height})`;
}

/** Redraw the values of a figure, as mechdesign.report._maps draws them. */
function redraw(picture, view, values, scale, mark) {
  const group = picture.querySelector(".values");
  const hue = picture.dataset.hue;
  group.replaceChildren();
  group.setAttribute("transform", fitted(picture, view));
  const paths = new Map();
  const add = (kind, part) => paths.set(kind, (paths.get(kind) || "") + part);
  if (view.form === "grid") add("absent", `M0 0h1000v${view.height}H0z`);
  values.forEach((value, index) => {
    const kind = `${hue}${level(scale, value)}`;
    if (view.form === "grid") {
      const [columns, rows] = view.cells;
      const [width, height] = [1000 / columns, view.height / rows];
      const y = (rows - 1 - Math.floor(index / columns)) * height;
      if (value > 0) add(kind, `M${(index % columns) * width} ${y}h${width}v${height}h${-width}z`);
    } else if (view.form === "bars") {
      const [x] = view.places[index];
      const width = view.widths[index];
      // The axis ends at 1.04 times the largest value.
      const height = (view.height * value) / (1.04 * scale.top);
      const bar = index === mark ? "mark" : `${hue}${Math.floor(0.62 * scale.levels)}`;
      if (value > 0) add(bar, `M${x - width / 2} ${view.height}v${-height}h${width}v${height}z`);
      else add("none", `M${x} ${view.height}h0`);
    }
  });
  for (const [kind, d] of paths) group.append(element("path", { class: kind, d }));
  if (view.form === "points") {
    const most = Math.max(...values) || 1;
    const order = [...values.keys()].sort((a, b) => values[b] - values[a]);
    for (const index of [...order.filter((i) => values[i] === 0), ...order.filter((i) => values[i] > 0)]) {
      const [cx, cy] = view.places[index];
      const part = values[index] > 0 ? Math.sqrt(Math.max(0.12, values[index] / most)) : 0.3;
      const kind = values[index] > 0 ? `${hue}${level(scale, values[index])}` : "hollow";
      group.append(element("circle", { class: kind, cx, cy, r: (part * view.widths) / 2 }));
    }
  }
  picture.querySelectorAll(".numbers text").forEach((text, index) => {
    text.classList.toggle("on", values[index] > 0 && level(scale, values[index]) >= 14);
  });
  picture.querySelectorAll(":scope > .mark").forEach((each) => each.remove());
  if (mark !== null) for (const kind of ["mark outer", "mark"]) picture.append(around(picture, view, mark, kind));
}

/** Return an outline around a member of a map, or above a bar. */
function around(picture, view, index, kind) {
  const common = { class: kind, transform: fitted(picture, view) };
  if (view.form === "grid") {
    const [columns, rows] = view.cells;
    const [width, height] = [1000 / columns, view.height / rows];
    const y = (rows - 1 - Math.floor(index / columns)) * height;
    return element("rect", { ...common, x: (index % columns) * width, y, width, height });
  }
  const [x, y] = view.places[index];
  if (view.form === "points") return element("circle", { ...common, cx: x, cy: y, r: 0.62 * view.widths });
  const width = Math.max(view.widths[index], 4);
  if (kind === "cursor") common.class = "cursor band";
  else common.visibility = "hidden";
  return element("rect", { ...common, x: x - width / 2, y: 0, width, height: view.height });
}

async function inflate(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return decode(new Uint8Array(await new Response(stream).arrayBuffer()));
}

async function start() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const views = { secrets: data.secrets, answers: data.answers || data.secrets };
  const answers = data.channel ? views.answers.size : 0;
  const channel = data.channel ? await inflate(data.channel) : null;
  const stored = data.beliefs ? await inflate(data.beliefs) : null;
  const rowOf = new Map((data.rows || []).map((secret, row) => [secret, row]));
  let chosen = data.first || 0;

  const answersOf = (secret) => {
    const row = rowOf.get(secret);
    return row === undefined ? null : channel.subarray(row * answers, (row + 1) * answers);
  };
  const beliefsOf = (secret) => {
    const row = rowOf.get(secret);
    if (row === undefined) return null;
    return stored ? stored.subarray(row * data.secrets.size, (row + 1) * data.secrets.size) : believed(channel, data.prior, answers, secret);
  };
  let beliefs = beliefsOf(chosen);

  const shown = (picture) => {
    const [what, of] = picture.dataset.shows.split(" ");
    if (what === "answers") return { view: views.answers, values: answersOf(chosen), unit: "%", said: "answered" };
    if (what === "beliefs") return { view: views.secrets, values: beliefs, unit: "%", said: "believed" };
    if (what === "row") return { view: views.answers, values: answersOf(Number(of)), unit: "%", said: "answered" };
    return { view: views[picture.dataset.side], ...data.series[what], said: data.series[what].said || what };
  };

  const tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("role", "status");
  tip.hidden = true;
  document.body.append(tip);

  const clear = (picture) => {
    picture.querySelectorAll(".cursor").forEach((each) => each.remove());
    tip.hidden = true;
  };
  const point = (picture, index) => {
    clear(picture);
    const { view, values, unit, said } = shown(picture);
    if (!values) return;
    const cursor = around(picture, view, index, "cursor");
    picture.append(cursor);
    tip.replaceChildren();
    for (const line of [named(view, index), place(view, index), `${said}: ${written(values[index], unit)}`]) {
      if (!line) continue;
      const part = document.createElement("div");
      part.textContent = line;
      tip.append(part);
    }
    tip.hidden = false;
    const box = cursor.getBoundingClientRect();
    const size = tip.getBoundingClientRect();
    const left = Math.min(window.innerWidth - size.width - 8, Math.max(8, box.left + box.width / 2 - size.width / 2));
    const above = box.top - size.height - 8;
    tip.style.left = `${left}px`;
    tip.style.top = `${above > 4 ? above : Math.min(box.bottom + 8, window.innerHeight - size.height - 8)}px`;
    picture.dataset.at = index;
  };
  document.addEventListener("scroll", () => (tip.hidden = true), { passive: true });

  const figure = document.getElementById("secret");
  const select = figure && figure.querySelector("select");
  const choose = (secret) => {
    if (!figure || !rowOf.has(secret)) return;
    chosen = secret;
    beliefs = beliefsOf(secret);
    select.value = secret;
    figure.querySelector(".finding").textContent = `One secret at a time: ${named(data.secrets, secret)}`;
    for (const picture of figure.querySelectorAll("[data-shows]")) {
      const { view, values } = shown(picture);
      redraw(picture, view, values, data.scale, view === data.secrets ? secret : null);
    }
  };

  for (const picture of document.querySelectorAll("[data-shows]")) {
    const at = (event) => {
      const box = picture.querySelector(".box").getBoundingClientRect();
      const { view } = shown(picture);
      const x = ((event.clientX - box.left) / box.width) * 1000;
      return memberAt(view, x, ((event.clientY - box.top) / box.height) * view.height);
    };
    const pick = (index) => {
      if (picture.dataset.side !== "secrets") return;
      choose(index);
      if (figure && !figure.contains(picture)) figure.scrollIntoView({ block: "nearest" });
    };
    picture.classList.add("live");
    picture.addEventListener("pointermove", (event) => point(picture, at(event)));
    picture.addEventListener("pointerleave", () => clear(picture));
    picture.addEventListener("blur", () => clear(picture));
    picture.addEventListener("click", (event) => {
      const index = at(event);
      pick(index);
      point(picture, index);
    });
    picture.addEventListener("focus", () => {
      if (picture.matches(":focus-visible")) point(picture, Number(picture.dataset.at ?? chosen));
    });
    picture.addEventListener("keydown", (event) => {
      const index = Number(picture.dataset.at ?? chosen);
      if (event.key.startsWith("Arrow")) point(picture, neighbour(shown(picture).view, index, event.key));
      else if (event.key === "Enter" || event.key === " ") pick(index);
      else if (event.key === "Escape") clear(picture);
      else return;
      event.preventDefault();
    });
  }

  if (select) {
    for (const secret of data.rows) select.add(new Option(named(data.secrets, secret), secret));
    select.value = chosen;
    select.addEventListener("change", () => choose(Number(select.value)));
    figure.querySelector(".chooser").hidden = false;
  }
}

if (typeof document !== "undefined") start();
