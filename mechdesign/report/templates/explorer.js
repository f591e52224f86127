"use strict";
// Shows for one secret at a time its answers and the beliefs of an adversary, each as a picture and as a table.
(() => {
  const figure = document.getElementById("explorer");
  const { prior, used, channel, panels } = JSON.parse(figure.querySelector("script").textContent);
  const select = figure.querySelector("select");
  const steps = new Uint16Array(Uint8Array.from(atob(channel), (each) => each.charCodeAt(0)).buffer);
  const rowOf = (secret) => steps.subarray(secret * used.length, (secret + 1) * used.length);
  const given = prior.map((_, s) => Array.from(rowOf(s), (step) => step && 10 ** ((step - 65535) / 1e4)));
  const totals = used.map((_, o) => prior.reduce((sum, share, t) => sum + share * given[t][o], 0));
  const answersOf = (secret) => panels[0].names.map((_, answer) => given[secret][used.indexOf(answer)] ?? 0);

  /** Return the mean posterior: the sum over answers o of p(o|secret) Pr(t|o), for each t. */
  function beliefsOf(secret) {
    const posterior = (t, o) => (totals[o] > 0 ? (prior[t] * given[t][o]) / totals[o] : prior[t]);
    return prior.map((_, t) => given[secret].reduce((sum, share, o) => sum + share * posterior(t, o), 0));
  }

  function percent(value) {
    if (value > 0 && value <= 1e-6) return "at most 0.0001%";
    return `${Number((100 * value).toPrecision(value < 0.995 ? 2 : 3))}%`;
  }

  function draw({ canvas, boxes, bars, own, height, values }, secret) {
    const pen = canvas.getContext("2d");
    const largest = Math.max(...values);
    pen.clearRect(0, 0, 1000, height);
    boxes.forEach(([x, y, width, length], index) => {
      const [chosen, share] = [own && index === secret, values[index] / largest];
      pen.fillStyle = chosen && bars ? "#d9480f" : "#2b1065";
      pen.globalAlpha = bars ? 1 : Math.sqrt(share);
      if (bars) return pen.fillRect(x - 0.4 * width, height * (1 - share), 0.8 * width, height * share);
      pen.fillRect(x - width / 2, y - length / 2, width, length);
      const edge = chosen ? 9 : 1;
      [pen.strokeStyle, pen.globalAlpha, pen.lineWidth] = chosen ? ["#d9480f", 1, edge] : ["#2b1065", 0.3, edge];
      pen.strokeRect(x - (width - edge) / 2, y - (length - edge) / 2, width - edge, length - edge);
    });
  }

  function choose(secret) {
    select.value = secret;
    for (const panel of panels) {
      const values = (panel.values = panel.of(secret));
      draw(panel, secret);
      const order = [...values.keys()].sort((a, b) => values[b] - values[a]);
      const lines = order.map((index) => [panel.names[index], percent(values[index])]);
      const most = lines.slice(0, 3).filter(([, share]) => share !== "0%");
      panel.said.textContent = `Most: ${most.map((line) => line.join(": ")).join("; ")}`;
      panel.canvas.setAttribute("aria-label", `${panel.title}, ${lines.length} values. ${panel.said.textContent}`);
      panel.rows.replaceChildren();
      for (const line of lines) {
        const row = panel.rows.insertRow();
        for (const text of line) row.insertCell().textContent = text;
      }
    }
  }

  figure.querySelectorAll(".picture").forEach((part, place) => {
    const panel = panels[place];
    const [title, canvas, said, rows] = ["h4", "canvas", "p", "tbody"].map((name) => part.querySelector(name));
    Object.assign(panel, { title: title.textContent, canvas, said, rows, of: [answersOf, beliefsOf][place] });
    [canvas.width, canvas.height] = [1000, panel.height];
    for (const kind of ["pointermove", "click"]) {
      canvas.addEventListener(kind, (event) => {
        const box = canvas.getBoundingClientRect();
        const [x, y] = [(1000 * (event.x - box.left)) / box.width, (panel.height * (event.y - box.top)) / box.height];
        const apart = panel.boxes.map(([a, b, wide, long]) => Math.max(Math.abs(a - x) / wide, Math.abs(b - y) / long));
        const index = apart.indexOf(Math.min(...apart));
        if (kind === "click" && panel.own) choose(index);
        else said.textContent = `${panel.names[index]}: ${percent(panel.values[index])}`;
      });
    }
  });
  panels[1].names.forEach((name, secret) => select.add(new Option(name, secret)));
  select.addEventListener("change", () => choose(Number(select.value)));
  figure.hidden = false;
  choose(prior.indexOf(Math.max(...prior)));
})();
