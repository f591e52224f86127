// The page that verifies bundles: it reads the chosen files, and a worker proves them. Nothing is sent anywhere.
"use strict";
(() => {
  const script = document.currentScript.src;
  const at = (name) => new URL(name, script).href;
  const MOST_FILES = 1000;
  const MOST_BYTES = 2 ** 29;
  const HEADINGS = {
    accepted: "Accepted: every claim is proved.",
    refused: "Refused: a claim is not proved.",
    undecided: "Not decided.",
    stopped: "Stopped. Nothing was decided.",
    failed: "The verifier could not run here.",
  };

  /** Return the files below an entry that was dropped, with their paths. */
  async function below(entry, path = "") {
    if (entry.isFile) {
      const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
      return [[path + entry.name, file]];
    }
    const reader = entry.createReader();
    const found = [];
    for (;;) {
      // A reader returns some entries at a time, and none at the end.
      const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
      if (!some.length) return found;
      for (const each of some) found.push(...(await below(each, `${path}${entry.name}/`)));
      if (found.length > MOST_FILES) return found;
    }
  }

  /** Return a file of the example. */
  async function example(name) {
    const answer = await fetch(at(`example/${name}`));
    if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
    return answer.blob();
  }

  /** Return a file with the lowest bit of its middle byte flipped. */
  async function flipped(file) {
    const content = new Uint8Array(await file.arrayBuffer());
    content[content.length >> 1] ^= 1;
    return new Blob([content]);
  }

  function start(root) {
    const part = (selector) => root.querySelector(selector);
    if (location.protocol === "file:") {
      part(".served").hidden = false;
      return;
    }
    part(".tool").hidden = false;
    const [run, result, said] = [part(".run"), part(".result"), part(".said")];
    let worker = null;
    let ticking = null;

    function end() {
      clearInterval(ticking);
      run.hidden = true;
    }

    function stop() {
      if (worker) worker.terminate();
      worker = null;
      end();
    }

    function show(verdict, lines = [], claims = []) {
      const add = (tag, text, parent = result) => {
        const made = document.createElement(tag);
        made.textContent = text;
        parent.append(made);
        return made;
      };
      result.replaceChildren();
      result.dataset.verdict = verdict;
      add("h3", HEADINGS[verdict]);
      if (claims.length) {
        const list = add("dl", "");
        for (const [name, claim] of claims) [add("dt", name, list), add("dd", claim, list)];
      }
      if (lines.length) {
        add("p", "The verifier says:");
        add("pre", lines.join("\n"));
      }
      said.textContent = HEADINGS[verdict];
    }

    function fail(error) {
      stop();
      show("failed", [String(error)]);
    }

    function newWorker() {
      // A worker from a blob is under the policy of this page, which forbids requests to other hosts.
      const text = `import ${JSON.stringify(at("worker.js"))};`;
      const blob = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
      const made = new Worker(blob, { type: "module" });
      made.onerror = (event) => fail(event.message || "the worker could not be loaded");
      made.onmessage = ({ data }) => {
        if (data.stage) said.textContent = part(".stage").textContent = data.stage;
        if (data.failed) fail(data.failed);
        if (data.result) {
          end();
          show(data.result.verdict, data.result.lines, data.result.claims);
          result.focus();
        }
      };
      return made;
    }

    function clear() {
      if (!run.hidden) stop();
      result.replaceChildren();
      delete result.dataset.verdict;
    }

    async function verify(chosen) {
      clear();
      if (chosen.length > MOST_FILES || chosen.reduce((sum, [, file]) => sum + file.size, 0) > MOST_BYTES) {
        show("undecided", [`more than ${MOST_FILES} files, or more than ${MOST_BYTES} bytes: choose one bundle`]);
        return;
      }
      run.hidden = false;
      said.textContent = part(".stage").textContent = "Reading the files";
      const began = Date.now();
      const tick = () => (part(".clock").textContent = `${Math.round((Date.now() - began) / 1000)} s`);
      tick();
      ticking = setInterval(tick, 1000);
      worker = worker || newWorker();
      const mine = worker;
      try {
        const read = ([path, file]) => file.arrayBuffer().then((content) => [path, new Uint8Array(content)]);
        const files = await Promise.all(chosen.map(read));
        if (worker === mine) mine.postMessage({ files });
      } catch (error) {
        fail(error);
      }
    }

    const drop = part(".drop");
    for (const name of ["dragenter", "dragover"]) {
      drop.addEventListener(name, (event) => {
        event.preventDefault();
        drop.classList.add("over");
      });
    }
    drop.addEventListener("dragleave", () => drop.classList.remove("over"));
    drop.addEventListener("drop", async (event) => {
      event.preventDefault();
      drop.classList.remove("over");
      clear();
      // The entries are gone after the first pause.
      const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
      try {
        verify((await Promise.all(entries.map((entry) => below(entry)))).flat());
      } catch (error) {
        fail(error);
      }
    });
    for (const input of root.querySelectorAll("input[type=file]")) {
      input.addEventListener("change", () => {
        if (input.files.length) verify([...input.files].map((file) => [file.webkitRelativePath || file.name, file]));
        input.value = "";
      });
    }
    for (const button of root.querySelectorAll("[data-example]")) {
      button.addEventListener("click", async () => {
        clear();
        try {
          const names = ["certificate.json", ...Object.keys(JSON.parse(await (await example("certificate.json")).text()).files)];
          const files = await Promise.all(names.map(async (name) => [name, await example(name)]));
          if (button.dataset.example === "flip") {
            const channel = files.find(([name]) => name === "channel.npz");
            channel[1] = await flipped(channel[1]);
          }
          verify(files);
        } catch (error) {
          fail(error);
        }
      });
    }
    part(".stop").addEventListener("click", () => {
      stop();
      show("stopped");
      result.focus();
    });
  }

  const root = document.getElementById("verifier");
  if (root) start(root);
})();
