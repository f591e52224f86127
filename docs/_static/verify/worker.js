// Proves bundles in Python, away from the page. The page sends {files: [[path, Uint8Array], …]}.
import { loadPyodide } from "./pyodide/pyodide.mjs";

async function start() {
  postMessage({ stage: "Loading Python (13 MB, kept by the browser afterwards)" });
  const python = await loadPyodide();
  for (const name of ["second_verifier.py", "bundle.py"]) {
    const answer = await fetch(new URL(name, import.meta.url));
    if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
    python.FS.writeFile(name, await answer.text());
  }
  return python.runPython(`
import json, sys
sys.path.insert(0, ".")
import bundle
lambda files: json.dumps(bundle.verify({path: content.to_bytes() for path, content in files}))
`);
}

const started = start();

onmessage = async ({ data }) => {
  try {
    const verify = await started;
    postMessage({ stage: "Proving the bundle in integers and fractions" });
    postMessage({ result: JSON.parse(verify(data.files)) });
  } catch (error) {
    postMessage({ failed: String(error) });
  }
};
