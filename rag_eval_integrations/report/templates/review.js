"use strict";
// Asks a person which answer sentences are supported and which document sentences are relevant: two
// buttons at each, or keys. An answer is kept under a name of its own, so that two tabs lose
// nothing, and all are downloaded as lines of a file of people's labels. Texts become text nodes.
//
//   const review = ragEvalReview({ draw, file, who, status });  // `who` is the input with the name
//     with `save`, an address, answers are sent there instead; `given` are those that it holds
//   review.controls(element, call, key);                        // buttons at a sentence
//   review.clear();                                             // its element has gone
//   review.add(call);                                           // one that has no buttons now
//   review.download();                                          // `gather` has added all calls
//
// A call is { row: texts of its whole line, asked: keys, claims: keys, documents: keys }. On a page
// with keys of its own, ours are for the buttons alone (`scoped`).
const ragEvalReview = ({ draw, file, who, status, gather = () => {}, scoped = false, save = null, given = [] }) => {
  const calls = new Map(); // by row key
  let items = [];
  const unkept = new Map(); // where the browser keeps nothing, as in a sandbox, or need not
  let current = -1;

  // --- Answers

  const name = () => who.value.trim();
  const placeOf = (call, key, by = name()) =>
    JSON.stringify(["rag-eval", draw.population.digest, draw.pick, draw.seed, by, call.row.row_key, key]);

  function read(call, key) {
    const place = placeOf(call, key);
    try {
      const said = JSON.parse(unkept.get(place) ?? (save ? null : localStorage.getItem(place)));
      return said !== null && typeof said.label === "boolean" ? said : null;
    } catch {
      return null;
    }
  }
  function keep(call, key, label) {
    const when = new Date().toISOString().replace(/\.\d+Z$/, "+00:00");
    const text = JSON.stringify({ label, when });
    if (save) {
      send(call, key, label, text);
      return;
    }
    try {
      localStorage.setItem(placeOf(call, key), text);
    } catch {
      unkept.set(placeOf(call, key), text);
    }
  }
  async function send(call, key, label, text) {
    const place = placeOf(call, key);
    try {
      const body = JSON.stringify({ call: call.at, row_key: call.row.row_key, key, label, who: name() });
      const headers = { "Content-Type": "application/json" };
      const answer = await fetch(save, { method: "POST", headers, body });
      if (!answer.ok) throw new Error(await answer.text());
      unkept.set(place, text);
      refresh();
    } catch (error) {
      status.textContent = `Not saved: ${error.message}`;
    }
  }
  for (const { row_key, who: by, key, label, when } of given) {
    unkept.set(placeOf({ row: { row_key } }, key, by), JSON.stringify({ label, when }));
  }
  const isWhole = (call) => call.asked.every((key) => read(call, key) !== null);

  // --- Lines, as `dataset/_labels_file.py` writes them

  function lines() {
    const written = [];
    for (const call of calls.values()) {
      const said = new Map(call.asked.map((key) => [key, read(call, key)]).filter(([, one]) => one));
      const { row_key, id } = call.row;
      for (const [key, { label, when }] of said) {
        written.push({ row_key, id, key, label, who: name(), when, ...draw });
      }
      if (said.size === call.asked.length) {
        const yes = (key) => said.get(key)?.label === true;
        const last = [...said.values()].map((one) => one.when).sort().at(-1);
        written.push({
          ...call.row,
          all_relevant_sentence_keys: call.documents.filter(yes),
          all_utilized_sentence_keys: null,
          sentence_support_information: call.claims.map((key) => ({
            response_sentence_key: key, explanation: "", supporting_sentence_keys: [], fully_supported: yes(key),
          })),
          unsupported_response_sentence_keys: call.claims.filter((key) => !yes(key)),
          unasked_keys: ["utilized", "supporting", ...call.documents.filter((key) => !said.has(key))],
          who: name(), when: last, ...draw,
        });
      }
    }
    return written.map((line) => `${JSON.stringify(line)}\n`);
  }
  async function download() {
    await gather();
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(lines(), { type: "application/x-ndjson" }));
    link.download = file;
    link.click();
    URL.revokeObjectURL(link.href);
  }

  // --- Buttons and keys

  function refresh() {
    let answered = 0;
    for (const { call, key, buttons } of items) {
      const said = read(call, key);
      answered += said !== null;
      buttons.forEach((button, at) => button.setAttribute("aria-pressed", said?.label === (at === 0)));
    }
    const shown = new Set(items.map(({ call }) => call));
    const whole = [...shown].filter(isWhole).length;
    status.textContent =
      `${answered} of ${items.length} sentences answered, ${whole} of ${shown.size} ${shown.size === 1 ? "call" : "calls"} labelled whole.` +
      (save ? ` They are in ${file}.` : unkept.size ? " This browser keeps nothing: download before you close the page." : "");
  }
  function go(at) {
    if (at < 0 || at >= items.length) return;
    items[current]?.element.classList.remove("current");
    current = at;
    items[at].element.classList.add("current");
    items[at].buttons[0].focus({ preventScroll: true });
    items[at].element.scrollIntoView({ block: "center" });
  }
  function answer(at, label) {
    if (!items[at]) return;
    if (!name()) {
      who.focus();
      status.textContent = "Give your name first: it stands beside your labels.";
      return;
    }
    keep(items[at].call, items[at].key, label);
    refresh();
    const next = items.findIndex(({ call, key }, place) => place > at && read(call, key) === null);
    if (next >= 0) go(next);
  }
  const add = (call) => calls.set(call.row.row_key, call);
  function clear() {
    items = [];
    current = -1;
  }
  function controls(element, call, key) {
    add(call);
    const at = items.length;
    const isClaim = call.claims.includes(key);
    const words = isClaim ? ["supported", "not supported"] : ["relevant", "not relevant"];
    const buttons = words.map((word, place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = word;
      button.addEventListener("click", () => answer(at, place === 0));
      button.addEventListener("focus", () => {
        items[current]?.element.classList.remove("current");
        current = at;
        element.classList.add("current");
      });
      return button;
    });
    const group = document.createElement("span");
    group.className = "ask";
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", `${isClaim ? "Answer" : "Document"} sentence ${key}`);
    group.append(...buttons);
    element.append(group);
    items.push({ element, call, key, buttons });
  }
  const unanswered = () => items.findIndex(({ call, key }) => read(call, key) === null);
  const keys = {
    y: () => answer(current, true),
    n: () => answer(current, false),
    j: () => go(current + 1),
    k: () => go(current - 1),
    u: () => go(unanswered()),
    d: download,
  };
  document.addEventListener("keydown", (event) => {
    const typed = event.target.closest?.("input, select, textarea");
    if (scoped && !event.target.closest?.(".ask")) return;
    if (typed || event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });
  window.addEventListener("storage", refresh); // another tab
  who.addEventListener("input", refresh);
  return { add, clear, controls, download, refresh };
};

// The page of `rag-eval review --page`.
(() => {
  const given = document.getElementById("review-data");
  if (!given) return;
  const { calls, draw, file } = JSON.parse(given.textContent);
  const byId = (id) => document.getElementById(id);
  const review = ragEvalReview({ draw, file, who: byId("who"), status: byId("status") });
  document.querySelectorAll("[data-call]").forEach((element) => {
    review.controls(element, calls[element.dataset.call], element.dataset.key);
  });
  byId("download").addEventListener("click", review.download);
  byId("unscripted").hidden = true;
  byId("tools").hidden = false;
  review.refresh();
})();
