// The slider of ε and floor: it shows stored designs, whose numbers are rounded already; it computes nothing.
"use strict";
(() => {
  const { cells, epsilons, odds, floors, designs, blind, first } = mechdesignDesigns;
  const [columns, rows] = cells;
  const root = document.getElementById("slider");
  const [range, select] = [root.querySelector("#slider-epsilon"), root.querySelector("#slider-cell")];
  const [picture, caption, list] = ["svg", "figcaption", "dl"].map((name) => root.querySelector(name));
  const [headline, output] = [".headline", "output"].map((name) => root.querySelector(name));
  // At this strength, the contrast of both colours of text is at least 4.5, in light and in dark mode.
  const STRONG = 0.64;

  function svg(name, attributes, parent) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    parent.append(made);
    return made;
  }

  // Rows are counted from the south, and pictures from the top.
  const corner = (cell) => [100 * (cell % columns), 100 * (rows - 1 - Math.floor(cell / columns))];
  const place = (cell) => `column ${(cell % columns) + 1}, row ${Math.floor(cell / columns) + 1}`;
  const percent = (thousandths) => `${thousandths < 10 ? thousandths / 10 : Math.round(thousandths / 10)} %`;
  const tiles = Array.from({ length: columns * rows }, (_, cell) => {
    const [x, y] = corner(cell);
    const group = svg("g", {}, picture);
    const title = svg("title", {}, group);
    svg("rect", { x, y, width: 100, height: 100, class: "ground" }, group);
    const tile = svg("rect", { x, y, width: 100, height: 100, class: "answer" }, group);
    const text = svg("text", { x: x + 50, y: y + 60 }, group);
    group.addEventListener("click", () => {
      select.value = cell;
      show();
    });
    return { tile, text, title };
  });
  const truth = svg("rect", { width: 100, height: 100, class: "truth" }, picture);

  function show() {
    const [at, cell] = [Number(range.value), Number(select.value)];
    const floor = Number(root.querySelector("input[type=radio]:checked").value);
    const design = designs[at][floor];
    const row = new Array(columns * rows).fill(0);
    if (design) design.answers.forEach((answer, index) => (row[answer] = design.rows[cell][index]));
    row.forEach((share, each) => {
      const { tile, text, title } = tiles[each];
      const strength = Math.sqrt(share / 1000);
      tile.style.fillOpacity = strength;
      text.textContent = share >= 10 ? Math.round(share / 10) : "";
      text.classList.toggle("on", strength > STRONG);
      title.textContent = `${place(each)}: ${design ? percent(share) : "no design"}`;
    });
    const [x, y] = corner(cell);
    truth.setAttribute("x", x);
    truth.setAttribute("y", y);
    root.classList.toggle("infeasible", !design);

    const [epsilon, wanted] = [`ε = ${epsilons[at]} per km`, floors[floor] === "0" ? "no floor" : `a floor of ${floors[floor]} km`];
    const often = [...row.keys()].filter((each) => row[each] > 0).sort((a, b) => row[b] - row[a]).slice(0, 3);
    const answers = often.map((each) => `${place(each)} (${percent(row[each])})`).join("; ");
    output.textContent = `${epsilons[at]} per km`;
    range.setAttribute("aria-valuetext", `${epsilons[at]} per km, odds at 1 km change by at most ${odds[at]}`);
    headline.textContent = design
      ? `With ${epsilon} and ${wanted}, the expected error of an answer is at most ${design.error} km.`
      : `With ${wanted}, no mechanism exists: the expected error of a guess without any answer is at most ${blind} km.`;
    caption.textContent = design
      ? `Answers in percent when the true cell is the outlined one. The likeliest: ${answers}.`
      : "No design: the floor is too high for every ε.";
    picture.setAttribute("aria-label", design ? `Map of answers for the true cell ${place(cell)}: ${answers}` : "No design");
    const facts = design
      ? [
          ["An answer changes the odds between two cells with centres 1 km apart by a factor of at most", odds[at]],
          ["Expected error of the answers, at most", `${design.error} km`],
          ["Expected error of the best attack, at least", `${design.attack} km`],
          ["Mean squared error, at most", `${design.cost} km²`],
          ["Relative gap: the mean squared error is proved least, up to", design.gap],
        ]
      : [["An answer changes the odds between two cells with centres 1 km apart by a factor of at most", odds[at]]];
    list.replaceChildren();
    for (const [name, value] of facts) {
      for (const [tag, text] of [["dt", name], ["dd", value]]) {
        const made = document.createElement(tag);
        made.textContent = text;
        list.append(made);
      }
    }
  }

  root.addEventListener("input", show);
  range.value = first.epsilon;
  root.hidden = false;
  document.querySelector(".slider-table").open = false;
  show();
})();
