"use strict";
// Adds to the report what a script can: the table of all calls, one call opened, evidence lit.
// Texts become text nodes only. The address holds the state: #row=ID&s=KEY&sort=-NAME&f=…&q=…
(() => {
  const byId = (id) => document.getElementById(id);
  const page = JSON.parse(byId("page-data").textContent);
  const rows = JSON.parse(byId("index").textContent);
  const list = byId("list");
  const one = byId("one");
  const SVG = "http://www.w3.org/2000/svg";

  // --- Elements

  function filled(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
    }
    element.append(...children.flat(Infinity).filter((child) => child !== null && child !== ""));
    return element;
  }
  const make = (tag, attributes = {}, ...children) =>
    filled(document.createElement(tag), attributes, children);
  const draw = (tag, attributes, ...children) =>
    filled(document.createElementNS(SVG, tag), attributes, children);
  const quiet = (...words) => make("span", { class: "quiet" }, ...words);
  const words = (name) => name.replaceAll("_", " ");
  // A score's name is broken behind an underscore only.
  const named = (name) => name.split("_").flatMap((part, at) => (at ? ["_", make("wbr"), part] : part));

  // --- Rows: [link, question, patterns, values, bad scores, weak scores, what is unsupported, not evaluated, id]

  const NAME = 0, QUESTION = 1, PATTERNS = 2, VALUES = 3, BAD = 4, WEAK = 5, MARKS = 6, ERROR = 7, ID = 8;
  const rowOf = new Map(rows.map((row, at) => [row[NAME], at]));
  const means = new Map(Object.entries(page.means)); // a score may be called `constructor`
  const rank = page.patterns.map((name) => page.gravest.indexOf(name));
  const value = (row, score) => {
    const found = row[VALUES][score];
    return found === undefined || found === null || found < 0 ? null : found;
  };
  const code = (row, score) => {
    const found = row[VALUES][score];
    return found === undefined || found === null ? "" : page.codes[-1 - found];
  };
  function figure(number) {
    // Rounded as the file's other figures are: half of the last digit to even.
    const eighths = number * 8;
    if (Number.isInteger(eighths) && eighths % 2) {
      const low = Math.floor(number * 100);
      return ((low % 2 ? low + 1 : low) / 100).toFixed(2);
    }
    return number.toFixed(2);
  }
  function widthOf(name) {
    const longest = Math.max(...name.split("_").map((word) => word.length + 1));
    return Math.min(9, Math.max(4.3, longest * 0.47 + 0.2));
  }
  const gravity = (row) => (row[PATTERNS].length ? Math.min(...row[PATTERNS].map((at) => rank[at])) : null);
  const columns = [
    { name: ":call", label: "Call", width: "2.75rem", printed: ".4fr", num: true, of: (row, at) => at },
    { name: ":question", label: "Question", width: "minmax(11rem, 1fr)", printed: "1.6fr", of: (row) => row[QUESTION] },
    { name: ":marks", label: "Unsupported", width: "minmax(8rem, 1fr)", printed: "1.2fr", of: (row) => row[MARKS] || null },
    { name: ":pattern", label: "Pattern", width: "6.9rem", printed: "1fr", of: gravity },
    ...page.scores.map((name, at) => ({
      // In the address, `-` means descending and `:` a column that is no score.
      name: /^[-:=]/.test(name) ? `=${name}` : name,
      label: name, mean: means.get(name), width: `${widthOf(name)}rem`, printed: ".6fr", num: true,
      score: at, of: (row) => value(row, at),
    })),
    // Most calls have no id of their own.
    ...(rows.some((row) => row[ID]) ? [{ name: ":id", label: "Id", width: "minmax(4rem, .4fr)", printed: ".7fr", of: (row) => row[ID] || null }] : []),
  ];
  const columnOf = new Map(columns.map((column) => [column.name, column]));

  // --- State, and the address that holds it

  const MOST_FILTERS = 20; // that a link may bring: each is asked of every call
  const nothing = { row: null, s: null, sort: null, filters: [], q: "", full: false, missing: null };
  let state = nothing;

  function read(hash) {
    const found = { ...nothing };
    for (const part of hash.replace(/^#/, "").split("&")) {
      const at = part.indexOf("=");
      if (at < 1) continue;
      const text = decoded(part.slice(at + 1));
      const name = part.slice(0, at);
      if (name === "row") {
        found.row = rowOf.has(text) ? text : null;
        found.missing = rowOf.has(text) ? null : text;
      }
      else if (name === "s") found.s = text;
      else if (name === "sort" && columnOf.has(text.startsWith("-") ? text.slice(1) : text)) found.sort = text;
      else if (name === "q") found.q = text;
      else if (name === "full") found.full = true;
      else if (name === "f") found.filters = text.split(",", MOST_FILTERS).map(filterOf).filter(Boolean);
    }
    if (found.row === null) found.s = null;
    return found;
  }
  function decoded(text) {
    try { return decodeURIComponent(text); } catch { return text; }
  }
  function written(held) {
    const parts = [];
    const add = (name, text) => parts.push(`${name}=${encodeURIComponent(text)}`);
    if (held.row !== null) add("row", held.row);
    if (held.s !== null) add("s", held.s);
    if (held.sort !== null) add("sort", held.sort);
    if (held.filters.length) add("f", held.filters.map((filter) => filter.text).join(","));
    if (held.q) add("q", held.q);
    if (held.full) parts.push("full=1");
    return `#${parts.join("&")}`;
  }
  let address = null;
  let returning = null; // a step back, which a browser takes when it likes
  async function go(change, { back = false } = {}) {
    if (returning) await returning;
    state = { ...state, missing: null, ...change };
    address = written(state);
    try {
      if (back) history.pushState(state.row === null ? null : "call", "", address);
      else history.replaceState(state.row === null ? null : history.state, "", address);
    } catch { /* a frame that may not: the page works, its address does not follow */ }
    return show();
  }
  addEventListener("hashchange", follow);
  addEventListener("popstate", follow);
  function follow() {
    if (location.hash === address) return;
    address = location.hash;
    // An anchor of the static part, such as #list-heading, holds no state, but shows no call either.
    const anchor = location.hash && !location.hash.includes("=");
    if (anchor && state.row === null) return;
    state = anchor ? { ...state, row: null, s: null } : read(location.hash);
    show();
  }

  // --- Filters: `pattern=NAME`, `failed`, `SCORE<=0.5`, `SCORE>=0.5`, `SCORE=unscored`

  function filterOf(text) {
    if (text === "failed") return { text, label: "could not be evaluated", keeps: (row) => row[ERROR] === 1 };
    const found = /^([^=<>]*)(<=|>=|=)(.*)$/.exec(text);
    if (!found) return null;
    const [, encoded, sign, wanted] = found;
    const name = decoded(encoded);
    if (name === "pattern" && sign === "=") {
      const at = page.patterns.indexOf(wanted);
      return { text, label: wanted, keeps: (row) => row[PATTERNS].includes(at) };
    }
    const score = page.scores.indexOf(name);
    if (score < 0) return null;
    if (sign === "=" && wanted === "unscored") {
      return { text, label: `${name} without a value`, keeps: (row) => code(row, score) !== "" && value(row, score) === null };
    }
    const limit = Number(wanted);
    if (sign === "=" || wanted === "" || !(limit >= 0 && limit <= 1)) return null;
    const keeps = sign === "<="
      ? (row) => value(row, score) !== null && value(row, score) <= limit
      : (row) => value(row, score) !== null && value(row, score) >= limit;
    return { text, label: `${name} ${sign === "<=" ? "at most" : "at least"} ${wanted}`, keeps };
  }

  // --- Details, unpacked a hundred calls at a time

  const chunks = []; // number of the first call of each, and what gives its compressed text
  for (let at = 0; at * page.chunk < rows.length; at += 1) {
    chunks.push({ from: at * page.chunk, text: () => byId(`calls-${at}`).textContent.trim(), said: null });
  }
  const unpacked = new Map();
  async function callAt(at) {
    const chunk = chunks.findLast((one) => one.from <= at);
    let found = unpacked.get(chunk);
    if (!found) {
      found = unpack(chunk.text());
      if (unpacked.size >= 4) unpacked.delete(unpacked.keys().next().value);
      unpacked.set(chunk, found);
    }
    return { ...(await found)[at - chunk.from], row: rows[at][NAME] };
  }
  async function unpack(text) {
    const bytes = Uint8Array.fromBase64
      ? Uint8Array.fromBase64(text)
      : Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }
  async function allTexts() {
    // Everything that a call says, in lower case: made once, when it is first searched.
    for (const chunk of chunks.filter((one) => !one.said)) {
      const found = [];
      for (const call of await unpack(chunk.text())) {
        found.push([
          call.id, call.question, call.said || "", call.reference || "", call.error || "", ...call.turns.map((turn) => turn[1]),
          ...call.response.flatMap((sentence) => sentence[3].join("")),
          ...call.documents.flatMap((document) => [document.name, document.sentences.map((sentence) => sentence[2] + sentence[3]).join("")]),
          ...call.support.flatMap((entry) => [entry.why, ...entry.against]),
          ...call.scores.map((score) => score.reason),
        ].join("\n").toLowerCase());
      }
      chunk.said = found;
    }
    return chunks.flatMap((chunk) => chunk.said);
  }

  // --- The table

  const status = make("p", { id: "count", role: "status" });
  const printed = make("p", { class: "printed" });
  const missing = make("p", { class: "note none", role: "status" });
  const search = make("input", { type: "search", id: "q", autocomplete: "off", spellcheck: "false" });
  const full = make("input", { type: "checkbox", id: "full" });
  const pattern = make("select", { id: "pattern" }, make("option", { value: "" }, "any"),
    page.gravest.filter((name) => page.patterns.includes(name)).map((name) => make("option", { value: name }, name)));
  const scoreName = make("select", {}, page.scores.map((name) => make("option", { value: name }, name)));
  const operator = make("select", {}, make("option", { value: "<=" }, "at most"), make("option", { value: ">=" }, "at least"), make("option", { value: "=unscored" }, "without a value"));
  const limit = make("input", { type: "number", min: 0, max: 1, step: 0.05, value: 0.5 });
  const addFilter = make("button", { type: "button" }, "Add filter");
  const chips = make("ul", { class: "chips", "aria-label": "Filters" });
  const everything = make("button", { type: "button" }, "Show all calls");
  const help = make("button", { type: "button", "aria-haspopup": "dialog" }, "Keys ", make("kbd", {}, "?"));
  const head = make("div", { role: "row", class: "row head" });
  const body = make("div", { role: "rowgroup", class: "body" });
  const grid = make("div", { class: "grid", role: "table", "aria-label": "All calls" },
    make("div", { role: "rowgroup" }, head), body);
  const elements = [];
  let order = rows.map((_, at) => at);
  let shownRows = order;

  function buildTable() {
    const least = columns.reduce((sum, column) => sum + parseFloat(/[\d.]+/.exec(column.width)[0]) + 0.5, 1.5);
    grid.style.setProperty("--columns", columns.map((column) => column.width).join(" "));
    grid.style.setProperty("--printed", columns.map((column) => `minmax(0, ${column.printed})`).join(" "));
    grid.style.setProperty("--least", `${least}rem`);
    for (const column of columns) {
      const button = make("button", { type: "button" }, named(column.label), make("span", {}));
      button.addEventListener("click", () => sortBy(column));
      column.head = make("span", { role: "columnheader", class: column.num ? "num" : null }, button,
        column.mean ? make("span", { class: "mean-of" }, `mean ${column.mean}`) : "");
      head.append(column.head);
    }
    addRows(0);
  }
  function addRows(from) {
    for (let at = from; at < rows.length; at += 1) {
      const row = rows[at];
      const element = make("div", { role: "row", class: row[MARKS] ? "row" : "row whole" },
        make("span", { role: "cell", class: "num" }, String(page.first + at + 1)),
        make("span", { role: "cell" }, make("a", { href: `#row=${encodeURIComponent(row[NAME])}`, tabindex: -1, title: row[QUESTION] }, make("bdi", {}, row[QUESTION] || "(no question)"))),
        make("span", { role: "cell", class: "words", title: inWords(row[MARKS]) || null }, row[MARKS]),
        patternCell(row),
        page.scores.map((_, score) => scoreCell(row, score)),
        columnOf.has(":id") ? make("span", { role: "cell", class: "id" }, make("bdi", {}, row[ID])) : "",
      );
      element.dataset.at = at;
      elements.push(element);
    }
    place(elements.slice(from));
  }
  function place(placed) {
    const all = document.createDocumentFragment(); // one by one: a call takes only so many arguments
    for (const element of placed) all.append(element);
    body.append(all);
  }
  const inWords = (marks) => ["none", "partial"].reduce((text, mark) => text.replace(page.signs[mark], `${page.states[mark]}:`), marks);
  function patternCell(row) {
    if (row[ERROR]) return make("span", { role: "cell", class: "pattern" }, "not evaluated");
    const names = row[PATTERNS].map((found) => page.patterns[found]); // the gravest first
    return make("span", { role: "cell", class: "pattern", title: names.join(", ") || null }, named(names[0] || ""), names.length > 1 ? ` +${names.length - 1}` : "",
      names.length > 1 ? make("span", { class: "unseen" }, `: ${names.slice(1).join(", ")}`) : "");
  }
  function scoreCell(row, score) {
    const number = value(row, score);
    const cell = { role: "cell", class: "num", "data-label": page.scores[score] };
    if (number === null) {
      const why = code(row, score);
      return make("span", { ...cell, class: why ? "num no" : "num best", title: why || null }, why ? `– (${words(why)})` : "–");
    }
    if (number === 1) cell.class = "num best"; // which a telephone leaves out
    const look = row[BAD].includes(score) ? "none" : row[WEAK].includes(score) ? "partial" : "";
    return make("span", cell, look ? badOf(figure(number), look) : figure(number));
  }
  const badOf = (text, look) => make("span", { class: `bad ${look}` }, `${text} ${page.signs[look]}`);
  function sortBy(column) {
    const current = state.sort;
    // Scores begin with the lowest, which is where the faults are.
    const next = current === column.name ? `-${column.name}` : current === `-${column.name}` ? null : column.name;
    go({ sort: next });
  }
  function sorted() {
    if (state.sort === null) return rows.map((_, at) => at);
    const down = state.sort.startsWith("-");
    const column = columnOf.get(down ? state.sort.slice(1) : state.sort);
    const keyed = rows.map((row, at) => [column.of(row, at), at]);
    keyed.sort(([a, i], [b, j]) => {
      if (a === null || b === null) return a === b ? i - j : a === null ? 1 : -1; // no value: last, both ways
      const less = typeof a === "string" ? a.localeCompare(b, "en") : a - b;
      return (down ? -less : less) || i - j;
    });
    return keyed.map(([, at]) => at);
  }

  let asked = 0;
  let wasSorted = null;
  async function showList() {
    const mine = (asked += 1);
    const needle = state.q.trim().toLowerCase();
    let found = null;
    if (needle && state.full && chunks.some((chunk) => !chunk.said)) status.textContent = "Searching all texts…";
    if (needle && state.full) {
      try {
        found = await allTexts();
      } catch {
        status.textContent = "This browser cannot unpack the texts.";
        return;
      }
      if (mine !== asked) return;
    }
    if (wasSorted !== state.sort) {
      order = sorted();
      const focused = body.contains(document.activeElement) ? document.activeElement : null;
      place(order.map((at) => elements[at]));
      if (focused) focused.focus({ preventScroll: true });
      wasSorted = state.sort;
    }
    const keeps = (at) => {
      const row = rows[at];
      if (!state.filters.every((filter) => filter.keeps(row))) return false;
      if (!needle) return true;
      return found ? found[at].includes(needle) : `${row[QUESTION]}\n${row[ID]}`.toLowerCase().includes(needle);
    };
    shownRows = order.filter(keeps);
    const kept = new Set(shownRows);
    const past = new Set(shownRows.slice(page.printed));
    elements.forEach((element, at) => {
      element.hidden = !kept.has(at);
      element.classList.toggle("past", past.has(at));
    });
    for (const column of columns) {
      const direction = state.sort === column.name ? "ascending" : state.sort === `-${column.name}` ? "descending" : null;
      if (direction) column.head.setAttribute("aria-sort", direction);
      else column.head.removeAttribute("aria-sort");
      column.head.firstChild.lastChild.textContent = direction ? (direction === "ascending" ? " ▲" : " ▼") : "";
    }
    const total = `${rows.length.toLocaleString("en")} ${rows.length === 1 ? "call" : "calls"}${page.part ? " on this page" : ""}`;
    status.textContent = shownRows.length === rows.length ? total : `${shownRows.length.toLocaleString("en")} of ${total}`;
    printed.textContent = past.size
      ? `Printed: the first ${page.printed} of ${shownRows.length.toLocaleString("en")} calls that the table shows.`
      : "";
    const chosen = state.filters.find((filter) => filter.text.startsWith("pattern="));
    pattern.value = chosen ? chosen.text.slice("pattern=".length) : "";
    const terms = state.filters.map((filter) => {
      const button = make("button", { type: "button" }, filter.label, " ", make("span", { "aria-hidden": "true" }, "✕"), make("span", { class: "unseen" }, " remove this filter"));
      button.addEventListener("click", () => {
        go({ filters: state.filters.filter((other) => other !== filter) });
        search.focus();
      });
      return make("li", {}, button);
    });
    chips.replaceChildren(...terms);
    chips.hidden = !terms.length;
    everything.hidden = !(state.filters.length || state.q || state.sort);
    roam(kept.has(current) ? current : shownRows[0]);
    listed = listKey();
  }

  // One row of the table is in the order of the tab key; j and k move it.
  let current = 0;
  const linkOf = (at) => elements[at].querySelector("a");
  function roam(at, focus = false) {
    if (elements[current]) linkOf(current).tabIndex = -1;
    if (at === undefined) return;
    current = at;
    linkOf(at).tabIndex = 0;
    if (focus) {
      linkOf(at).focus({ preventScroll: true });
      elements[at].scrollIntoView({ block: "nearest" });
    }
  }
  function move(step) {
    if (!shownRows.length) return;
    const inTable = body.contains(document.activeElement);
    const place = shownRows.indexOf(current);
    const next = inTable ? Math.min(shownRows.length - 1, Math.max(0, place + step)) : Math.max(0, place);
    roam(shownRows[next], true);
  }

  // --- One call, in the same way as `_call.html`

  const linked = (call, sentence) => sentence[1] !== "source" && (sentence[1] || call.response.includes(sentence));
  function sentenceOf(call, side, sentence, evidence) {
    const [key, mark, gap] = sentence;
    const pieces = [sentence[3]].flat();
    const named = key && linked(call, sentence);
    const element = make(named ? "a" : "span", {
      class: `s ${mark}`, "data-side": side, "data-key": key, "data-evidence": evidence.join(" "),
      href: named ? written({ ...state, row: call.row, s: key }) : null,
    });
    if (key) {
      // Of a direction of its own: the text's may be right to left.
      element.append(make("span", { class: "key", dir: "ltr" }, key, mark ? " " : "", mark ? make("span", { "aria-hidden": "true" }, page.signs[mark]) : ""), " ");
      if (mark) element.append(make("span", { class: "unseen", dir: "ltr" }, `(${page.states[mark]}) `));
    }
    element.append(...pieces.map((piece, at) => (at % 2 ? make("b", {}, piece) : piece)));
    return [gap, element];
  }
  function whyOf(call, entry) {
    const verdict = make("p", { class: "verdict" }, make("span", { class: "key" }, entry.key), " ",
      make("span", { class: `sign ${entry.state}` }, make("span", { "aria-hidden": "true" }, page.signs[entry.state]), ` ${page.states[entry.state]}`));
    if (entry.chance) verdict.append(quiet(` · probability of support ${entry.chance}`));
    if (entry.evidence.length) {
      verdict.append(quiet(" · evidence "));
      entry.evidence.forEach((key, at) => verdict.append(at ? " " : "", make("a", { class: "evidence", href: written({ ...state, row: call.row, s: key }), "data-go": key }, key)));
    }
    if (entry.other.length) verdict.append(quiet(" · instead of a sentence: "), entry.other.join(", "));
    return make("li", { class: entry.state, "data-why": entry.key }, verdict,
      entry.against.map((said) => make("p", { class: "against" }, make("b", {}, "Contradicted:"), " ", make("bdi", {}, said))),
      entry.why ? make("p", { class: "why" }, make("bdi", {}, entry.why)) : "");
  }
  function scoreOf(score) {
    const why = make("td", {}, make("bdi", {}, score.reason));
    if (score.bars.length) {
      why.append(make("ul", { class: "bars" }, score.bars.map(([name, share, width]) => make("li", {}, make("span", {}, name), " ",
        draw("svg", { width: 100, height: 10, viewBox: "0 0 100 10", "aria-hidden": "true" },
          draw("rect", { class: "track", width: 100, height: 10 }), draw("rect", { class: "bar", width, height: 10 })),
        " ", make("span", {}, share)))));
    }
    if (score.made.length || score.steps.length) {
      why.append(make("details", { class: "small" }, make("summary", {}, "How it was measured"),
        score.made.length ? make("p", {}, score.made.join("; ")) : "",
        score.steps.length ? make("ol", {}, score.steps.map((step) => make("li", {}, make("bdi", {}, step)))) : ""));
    }
    why.append(...score.more.map(([name, text]) => make("p", { class: "small" }, make("b", {}, `${name}:`), " ", make("bdi", {}, text))));
    return make("tr", {}, make("th", { scope: "row" }, named(score.name)),
      make("td", { class: "number" }, score.bad ? badOf(score.figure, score.bad) : score.figure, score.verdict ? make("p", { class: "small" }, score.verdict) : ""), why);
  }
  function articleOf(call) {
    const evidence = new Map(call.support.map((entry) => [entry.key, entry.evidence]));
    const answer = make("section", { class: "answer" }, make("h3", {}, "Answer"));
    answer.append(call.response.length
      ? make("p", { class: "text", dir: "auto" }, call.response.map((sentence) => sentenceOf(call, "a", sentence, evidence.get(sentence[0]) || [])))
      : make("p", { class: "text", dir: "auto" }, call.said || "(none)"));
    if (call.reference !== null) answer.append(make("h3", {}, "Expected answer"), make("p", { class: "text", dir: "auto" }, call.reference));
    if (call.support.length) {
      answer.append(make("h3", {}, "What the judge says of each sentence"), make("ul", { class: "support" }, call.support.map((entry) => whyOf(call, entry))));
    } else if (!call.labelled) {
      answer.append(make("p", { class: "quiet" }, "The sentences have no labels, so none is marked."));
    }
    answer.append(...call.judged.map(([heading, text]) => make("p", { class: "small" }, make("b", {}, `${heading}:`), " ", make("bdi", {}, text))));
    const documents = make("section", { class: "documents" }, make("h3", {}, "Documents, as the model saw them"));
    documents.append(...call.documents.map((document) => make("section", { class: "document" },
      make("h4", {}, `Document ${document.number}`, document.name ? [" ", make("bdi", { class: "name" }, document.name)] : "", " ", quiet(`· ${document.note}`)),
      make("p", { class: "text", dir: "auto" }, document.sentences.map((sentence) => sentenceOf(call, "d", sentence, []))))));
    if (!call.documents.length) documents.append(make("p", { class: "quiet" }, "(none)"));
    const article = make("article", { class: "call", "data-call": call.at });
    if (call.error) article.append(make("p", { class: "note none" }, make("b", {}, "Not evaluated:"), " ", make("bdi", {}, call.error)));
    if (call.turns.length) {
      article.append(make("details", { class: "more", open: "" }, make("summary", {}, `Earlier in the conversation (${call.turns.length})`),
        call.turns.map(([role, text]) => make("p", { class: "text" }, make("b", {}, `${role}:`), " ", make("bdi", {}, text)))));
    }
    article.append(make("div", { class: "sides" }, answer, documents),
      make("table", { class: "scores" }, make("caption", { class: "unseen" }, "Scores of this call"),
        make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Score"), make("th", { scope: "col", class: "number" }, "Value"), make("th", { scope: "col" }, "Why"))),
        make("tbody", {}, call.scores.map(scoreOf))),
      ...call.warnings.map((warning) => make("p", { class: "small quiet" }, `Note: ${warning}`)));
    if (call.left_out.length) {
      article.append(make("details", { class: "more" }, make("summary", {}, `Retrieved, but never in the prompt (${call.left_out.length})`),
        call.left_out.map(([name, text]) => make("p", { class: "text" }, make("b", {}, make("bdi", {}, name)), " ", make("bdi", {}, text)))));
    }
    article.append(make("details", { class: "more" }, make("summary", {}, "Captured data, judge and cost"),
      call.facts.map(([heading, pairs]) => [make("h3", {}, heading),
        make("dl", { class: "facts" }, pairs.map(([name, text]) => [make("dt", {}, make("bdi", {}, name)), make("dd", {}, make("bdi", {}, text))]))])));
    return article;
  }

  // --- Labels of a person, where the report was made with --review

  const review = page.review
    ? ragEvalReview({ ...page.review, who: byId("who"), status: byId("status"), gather, scoped: true })
    : null;
  async function gather() {
    for (let at = 0; at < rows.length; at += 1) {
      const call = await callAt(at);
      if (call.review) review.add(call.review);
    }
  }
  function ask(article, call) {
    if (!review) return;
    review.clear();
    byId("tools").hidden = !call.review;
    if (!call.review) return;
    call.review.at = call.at;
    for (const key of call.review.asked) {
      const isClaim = call.review.claims.includes(key);
      const places = [...article.querySelectorAll(isClaim ? "[data-why]" : ".s[data-side='d']")];
      let place = places.find((element) => (isClaim ? element.dataset.why : element.dataset.key) === key);
      if (!place) continue;
      if (!isClaim) place.after((place = make("span", {})));
      review.controls(place, call.review, key);
    }
    review.refresh();
  }
  if (review) byId("download").addEventListener("click", review.download);
  if (review) byId("download").hidden = Boolean(page.review.save);

  // --- Evidence: hover or focus lights it, Enter or a click pins it, Escape frees it

  const pins = new WeakMap(); // article → [side, key]
  const said = make("p", { class: "unseen", role: "status" });
  document.body.append(said);

  function light(article, side, key) {
    for (const element of article.querySelectorAll(".lit")) element.classList.remove("lit");
    if (key === null) return [];
    const sentences = [...article.querySelectorAll(".s[data-key]")];
    const own = sentences.filter((element) => element.dataset.side === side && element.dataset.key === key);
    const cited = own.length ? own[0].dataset.evidence.split(" ").filter(Boolean) : [];
    const others = sentences.filter((element) => side === "a"
      ? element.dataset.side === "d" && cited.includes(element.dataset.key)
      : element.dataset.side === "a" && element.dataset.evidence.split(" ").includes(key));
    const lit = [...own, ...others];
    const answers = side === "a" ? own : others;
    for (const entry of article.querySelectorAll("[data-why]")) {
      if (answers.some((element) => element.dataset.key === entry.dataset.why)) lit.push(entry);
    }
    for (const element of lit) element.classList.add("lit");
    return others;
  }
  const relight = (article) => light(article, ...(pins.get(article) || [null, null]));
  function inView(element) {
    const box = element.getBoundingClientRect();
    return box.top >= 60 && box.bottom <= innerHeight;
  }
  function pin(article, side, key) {
    pins.set(article, [side, key]);
    const others = light(article, side, key);
    if (others.length && !others.some(inView)) others[0].scrollIntoView({ block: "center" });
    const names = others.map((element) => element.dataset.key).join(", ");
    const told = side === "a"
      ? names ? `Evidence of ${key}: ${names}` : `${key} has no evidence in the documents`
      : names ? `${key} is evidence of ${names}` : `${key} is evidence of no sentence of the answer`;
    said.textContent = `${told}. Escape frees it.`;
  }
  function free(article) {
    pins.delete(article);
    light(article, null, null);
    said.textContent = "";
  }
  const sentenceAt = (event) => (event.target instanceof Element ? event.target.closest(".call .s[data-key]") : null);
  const articleAt = (element) => element.closest(".call");
  for (const [on, off] of [["mouseover", "mouseout"], ["focusin", "focusout"]]) {
    document.addEventListener(on, (event) => {
      const sentence = sentenceAt(event);
      if (sentence && sentence.dataset.key) light(articleAt(sentence), sentence.dataset.side, sentence.dataset.key);
    });
    document.addEventListener(off, (event) => {
      const sentence = sentenceAt(event);
      if (sentence) relight(articleAt(sentence));
    });
  }
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    const sentence = sentenceAt(event);
    if (sentence) {
      if (!sentence.dataset.key || !sentence.matches("a")) return;
      event.preventDefault();
      const article = articleAt(sentence);
      const [side, key] = pins.get(article) || [];
      const again = side === sentence.dataset.side && key === sentence.dataset.key;
      if (again) free(article);
      else pin(article, sentence.dataset.side, sentence.dataset.key);
      if (one.contains(article)) go({ s: again ? null : sentence.dataset.key });
      return;
    }
    const target = event.target instanceof Element ? event.target.closest("[data-go]") : null;
    if (target) {
      event.preventDefault();
      const article = articleAt(target);
      pin(article, "d", target.dataset.go);
      const there = [...article.querySelectorAll(".s[data-side='d']")].find((element) => element.dataset.key === target.dataset.go);
      if (there) {
        if (!inView(there)) there.scrollIntoView({ block: "center" });
        there.focus({ preventScroll: true });
      }
      go({ s: target.dataset.go });
      return;
    }
    const row = event.target instanceof Element ? event.target.closest(".body .row") : null;
    if (row && !String(getSelection())) {
      event.preventDefault();
      open(Number(row.dataset.at));
    }
  });

  // --- Opening and leaving a call

  let opened = null;
  let heading = document.title;
  const open = (at) => go({ row: rows[at][NAME], s: null }, { back: state.row === null });
  function close() {
    // Where opening was a step of the history, leaving takes it back.
    if (history.state !== "call") return go({ row: null, s: null });
    state = { ...state, row: null, s: null };
    address = written(state);
    returning = new Promise((resolve) => {
      addEventListener("popstate", resolve, { once: true });
      setTimeout(resolve, 1000);
    }).then(() => { returning = null; });
    history.back();
    return show();
  }

  async function showCall() {
    const name = state.row;
    const at = rowOf.get(name);
    if (opened !== name) {
      const mine = (asked += 1);
      let call;
      try {
        call = await callAt(at);
      } catch {
        one.replaceChildren(make("p", {}, "This browser cannot unpack the call."));
        one.hidden = false;
        return;
      }
      if (mine !== asked || state.row !== name) return;
      opened = name;
      current = at;
      const title = make("h2", { tabindex: -1 }, make("bdi", {}, call.question || "(no question)"));
      one.replaceChildren(barOf(at), title,
        make("p", { class: "small quiet" }, `Call ${call.at}`, call.id ? [" · ", make("bdi", {}, call.id)] : "", call.patterns.map((found) => [" · ", named(found)])),
        legend(), articleOf(call));
      one.hidden = false;
      ask(one.querySelector(".call"), call);
      document.body.classList.add("one");
      document.title = `${call.question.slice(0, 80)} – ${heading}`;
      if (state.s === null) scrollTo(0, 0);
      title.focus({ preventScroll: state.s !== null });
      mark();
    }
    const article = one.querySelector(".call");
    if (state.s === null) {
      if (pins.has(article)) free(article);
    } else if ((pins.get(article) || [])[1] !== state.s) {
      const sentence = ["a", "d"].map((side) => [...article.querySelectorAll(`.s[data-side='${side}']`)].find((element) => element.dataset.key === state.s)).find(Boolean);
      if (sentence) {
        if (!inView(sentence)) sentence.scrollIntoView({ block: "center" });
        pin(article, sentence.dataset.side, state.s);
        sentence.focus({ preventScroll: true });
      }
    }
  }
  function barOf(at) {
    const button = (label, key, action) => {
      const element = make("button", { type: "button" }, label, " ", make("kbd", {}, key));
      element.addEventListener("click", action);
      return element;
    };
    return make("nav", { class: "bar-of-call", "aria-label": "This call" },
      button("Back to all calls", "Esc", close), button("Previous", "p", () => step(-1)), button("Next", "n", () => step(1)),
      quiet(`${rows.length > 1 ? `Call ${(page.first + at + 1).toLocaleString("en")}${page.more === undefined ? ` of ${rows.length.toLocaleString("en")}` : ""}` : ""}`));
  }
  function step(by) {
    const place = shownRows.indexOf(current);
    const next = shownRows[place + by];
    if (place < 0 ? shownRows.length : next !== undefined) open(place < 0 ? shownRows[0] : next);
    else said.textContent = by > 0 ? "This is the last call." : "This is the first call.";
  }
  function legend() {
    const copy = document.querySelector(".legend");
    return copy ? copy.cloneNode(true) : "";
  }
  function leave() {
    const at = current;
    opened = null;
    one.hidden = true;
    one.replaceChildren();
    document.body.classList.remove("one");
    document.title = heading;
    for (const element of body.querySelectorAll(".seen")) element.classList.remove("seen");
    elements[at].classList.add("seen");
    roam(at);
    if (!elements[at].hidden) {
      elements[at].scrollIntoView({ block: "center" });
      linkOf(at).focus({ preventScroll: true });
    } else {
      const top = byId("list-heading");
      top.tabIndex = -1;
      top.focus();
    }
  }
  function mark() {
    // Words that were searched are marked where the browser can do so without new elements.
    if (!window.Highlight || !CSS.highlights) return;
    CSS.highlights.delete("found");
    const needle = state.q.trim().toLowerCase();
    if (!needle) return;
    const ranges = [];
    const walker = document.createTreeWalker(one, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node && ranges.length < 500; node = walker.nextNode()) {
      const text = node.data.toLowerCase();
      if (text.length !== node.data.length) continue;
      for (let from = text.indexOf(needle); from >= 0; from = text.indexOf(needle, from + needle.length)) {
        const range = document.createRange();
        range.setStart(node, from);
        range.setEnd(node, from + needle.length);
        ranges.push(range);
      }
    }
    if (ranges.length) CSS.highlights.set("found", new Highlight(...ranges));
  }
  async function show() {
    if (search.value !== state.q) search.value = state.q;
    full.checked = state.full;
    if (listed !== listKey()) await showList();
    missing.textContent = state.missing === null ? "" : "No call of this report has the name in the link: ";
    missing.hidden = state.missing === null;
    if (state.missing !== null) {
      missing.append(make("bdi", {}, JSON.stringify(state.missing.slice(0, 200))));
      list.scrollIntoView();
    }
    if (state.row !== null) await showCall();
    else if (opened !== null) leave();
  }
  let listed = null; // what the table shows now
  const listKey = () => written({ ...state, row: null, s: null });

  // --- Keys and controls

  const dialog = make("dialog", { "aria-labelledby": "keys-heading" });
  dialog.append(make("h2", { id: "keys-heading" }, "Keys"), make("table", {}, make("tbody", {}, [
    ["/", "search"], ["j k", "next and previous row of the table"], ["Enter", "open the call; in a call, pin a sentence's evidence"],
    ["n p", "next and previous call"], ["Esc", "free the evidence; leave the call"], ["?", "this list"],
  ].map(([key, does]) => make("tr", {}, make("th", { scope: "row" }, key.split(" ").map((one) => [make("kbd", {}, one), " "])), make("td", {}, does))))));
  const shut = make("button", { type: "button" }, "Close");
  shut.addEventListener("click", () => dialog.close());
  dialog.append(shut);

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || dialog.open) return;
    const field = event.target instanceof Element && event.target.closest("input, select, textarea");
    if (field) return;
    const article = one.querySelector(".call");
    const row = event.target instanceof Element && event.target.closest(".body .row");
    const actions = {
      "?": () => dialog.showModal(),
      "/": () => (state.row === null ? search.focus() : go({ row: null, s: null }).then(() => search.focus())),
    };
    if (state.row === null) {
      actions.j = () => move(1);
      actions.k = () => move(-1);
      if (row) {
        actions.ArrowDown = actions.j;
        actions.ArrowUp = actions.k;
        actions.Home = () => roam(shownRows[0], true);
        actions.End = () => roam(shownRows[shownRows.length - 1], true);
      }
      actions.Escape = () => {
        for (const other of document.querySelectorAll(".worst .call")) free(other);
      };
    } else {
      actions.n = actions.j = () => step(1);
      actions.p = actions.k = () => step(-1);
      actions.Escape = () => {
        if (article && pins.has(article)) go({ s: null });
        else close();
      };
    }
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });

  let typing = 0;
  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => go({ q: search.value }), 120);
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      clearTimeout(typing);
      go({ q: search.value }).then(() => move(0));
    }
    if (event.key === "Escape") {
      event.preventDefault();
      clearTimeout(typing);
      go({ q: "" });
    }
  });
  full.addEventListener("change", () => go({ full: full.checked }));
  const without = (start) => state.filters.filter((filter) => !filter.text.startsWith(start));
  pattern.addEventListener("change", () => go({
    filters: [...without("pattern="), ...(pattern.value ? [filterOf(`pattern=${pattern.value}`)] : [])],
  }));
  limit.addEventListener("keydown", (event) => { if (event.key === "Enter") addFilter.click(); });
  operator.addEventListener("change", () => { limit.parentElement.hidden = operator.value === "=unscored"; });
  addFilter.addEventListener("click", () => {
    const term = operator.value === "=unscored" ? operator.value : `${operator.value}${limit.value}`;
    const filter = filterOf(`${encodeURIComponent(scoreName.value)}${term}`);
    if (filter && !state.filters.some((other) => other.text === filter.text)) go({ filters: [...state.filters, filter] });
    else if (!filter) status.textContent = "The value should be a number from 0 to 1.";
  });
  everything.addEventListener("click", () => {
    go({ filters: [], q: "", full: false, sort: null });
    search.focus();
  });
  help.addEventListener("click", () => dialog.showModal());

  // --- Calls that come while a server shows the page

  let stale = false; // a call has a score without a column: the page is loaded anew once no call is open
  function add(more) {
    const score = more.scores.map((name) => page.scores.indexOf(name));
    if (score.includes(-1)) {
      stale = true;
      return;
    }
    const placeIn = (known) => (name) => (known.includes(name) ? known.indexOf(name) : known.push(name) - 1);
    const reason = more.codes.map(placeIn(page.codes));
    const kind = more.patterns.map(placeIn(page.patterns));
    for (const name of page.patterns.slice(rank.length)) {
      rank.push(page.gravest.indexOf(name));
      pattern.append(make("option", { value: name }, name));
    }
    const from = rows.length;
    more.chunks.forEach((text, at) => chunks.push({ from: from + at * page.chunk, text: () => text, said: null }));
    for (const line of more.index) {
      const row = JSON.parse(line);
      const values = page.scores.map(() => null);
      row[VALUES].forEach((given, at) => { values[score[at]] = given < 0 ? -1 - reason[-1 - given] : given; });
      row[VALUES] = values;
      row[BAD] = row[BAD].map((at) => score[at]);
      row[WEAK] = row[WEAK].map((at) => score[at]);
      row[PATTERNS] = row[PATTERNS].map((at) => kind[at]);
      while (rowOf.has(row[NAME])) row[NAME] += " (again)";
      rowOf.set(row[NAME], rows.push(row) - 1);
    }
    addRows(from);
    if (state.sort === null) order = rows.map((_, at) => at);
    else wasSorted = undefined;
    listed = null;
  }
  async function poll() {
    if (stale && state.row === null) location.reload();
    if (!stale && !(document.hidden && rows.length)) await take();
    if (stale || page.more) setTimeout(poll, 2000);
  }
  async function take() {
    const progress = byId("progress");
    let found;
    try {
      const response = await fetch(page.more);
      if (!response.ok) throw new Error(response.statusText);
      found = await response.json();
    } catch {
      progress.textContent = "The server does not answer; this is what it said last.";
      return;
    }
    const link = progress.querySelector("a");
    if (link && found.link && link.getAttribute("href") === found.link[1]) progress.firstChild.data = `${found.words} `;
    else progress.replaceChildren(`${found.words} `, found.link ? make("a", { href: found.link[1] }, found.link[0]) : "");
    if (found.verdict) document.querySelector(".verdict-of").textContent = found.verdict;
    if (found.lead) document.querySelector(".lead").textContent = found.lead;
    page.more = found.more;
    if (found.calls.index.length) add(found.calls);
    if (listed === null) show();
  }
  if (page.more) setTimeout(poll, 2000);

  // --- Begin

  byId("without-script").remove();
  if (rows.length) {
    buildTable();
    const labelled = (label, element) => {
      element.id = element.id || `filter-${label}`.toLowerCase();
      return make("span", { class: "field" }, make("label", { for: element.id }, label), element);
    };
    list.append(
      make("div", { class: "controls", role: "search", "aria-label": "Calls" },
        labelled("Search questions and ids", search),
        make("label", { class: "check" }, full, " also documents, answers and reasons"),
        page.patterns.length || page.more ? labelled("Pattern", pattern) : "",
        page.scores.length ? make("fieldset", {}, make("legend", { class: "unseen" }, "Filter by a score"),
          labelled("Score", scoreName), labelled("is", operator), labelled("value", limit), addFilter) : "",
        everything, help),
      chips, missing, status, printed, grid);
    document.body.append(dialog);
    for (const count of document.querySelectorAll("[data-filter]")) {
      const link = make("a", { href: `#f=${encodeURIComponent(count.dataset.filter)}` }, count.textContent, make("span", { class: "unseen" }, " calls: show them"));
      link.addEventListener("click", (event) => {
        event.preventDefault();
        const filter = filterOf(count.dataset.filter);
        if (filter) go({ filters: [filter], q: "", full: false }, { back: true }).then(() => {
          list.scrollIntoView();
          roam(shownRows[0], true);
        });
      });
      count.replaceChildren(link);
    }
    address = location.hash;
    state = read(location.hash);
    show();
  } else {
    list.hidden = true;
  }
})();
