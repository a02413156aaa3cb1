"use strict";
// Filters the failures and shows them page by page. Without it all of them stand on the page.
// The address holds the state: #rule=3&model=NAME&kind=err&q=WORDS&page=2, or #failure-7.
(() => {
  const byId = (id) => document.getElementById(id);
  const filter = byId("filter");
  if (!filter) return;
  const perPage = Number(filter.dataset.perPage);
  const failures = [...document.querySelectorAll("details.failure")];
  const pages = [...document.querySelectorAll("section.page")];
  const fields = new Map([...filter.querySelectorAll("select, input")].map((one) => [one.name, one]));
  const turn = byId("turn");
  const texts = new Map(); // of a failure, for the search: read once, when it is needed
  let page = 1;
  let shown = failures;

  function matches(one) {
    for (const name of ["rule", "model", "kind"]) {
      const wanted = fields.get(name).value;
      if (wanted && one.dataset[name] !== wanted) return false;
    }
    const words = fields.get("q").value.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return true;
    if (!texts.has(one)) texts.set(one, one.textContent.toLowerCase());
    return words.every((word) => texts.get(one).includes(word));
  }

  function show() {
    shown = failures.filter(matches);
    const count = Math.max(1, Math.ceil(shown.length / perPage));
    page = Math.min(Math.max(1, page), count);
    const visible = new Set(shown.slice((page - 1) * perPage, page * perPage));
    for (const one of failures) one.hidden = !visible.has(one);
    const number = (value) => value.toLocaleString("en");
    const of = shown.length === failures.length ? "" : ` of ${number(failures.length)}`;
    byId("count").textContent = `${number(shown.length)}${of} failures` +
      (count > 1 ? `, page ${number(page)} of ${number(count)}` : "");
    turn.hidden = count < 2;
    turn.querySelector("span").textContent = `Page ${number(page)} of ${number(count)}`;
    const [back, on] = turn.querySelectorAll("button");
    back.disabled = page === 1;
    on.disabled = page === count;
  }

  function keep() {
    const state = new URLSearchParams();
    for (const [name, field] of fields) if (field.value) state.set(name, field.value);
    if (page > 1) state.set("page", page);
    const text = state.toString();
    try {
      history.replaceState(null, "", text ? `#${text}` : "#failures");
    } catch { /* a frame without rights keeps no address */ }
  }

  function read() {
    const hash = location.hash.slice(1);
    const found = /^failure-(\d+)$/.exec(hash);
    const one = found && failures[Number(found[1]) - 1];
    const state = new URLSearchParams(hash.includes("=") ? hash : "");
    for (const [name, field] of fields) {
      const value = one ? "" : state.get(name) ?? "";
      field.value = value;
    }
    page = one ? Math.ceil(Number(found[1]) / perPage) : Number(state.get("page")) || 1;
    show();
    if (one) {
      one.open = true;
      one.scrollIntoView();
    } else if (hash.includes("=")) byId("failures").scrollIntoView();
  }

  function change() {
    page = 1;
    show();
    keep();
  }

  function go(steps) {
    page += steps;
    show();
    keep();
    byId("failures").scrollIntoView();
    const first = failures.find((one) => !one.hidden);
    if (first) first.querySelector("summary").focus({ preventScroll: true });
  }

  filter.addEventListener("input", change);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-go]");
    const cell = event.target.closest("a[data-rule]");
    if (button && button.dataset.go === "reset") {
      for (const field of fields.values()) field.value = "";
      change();
    } else if (button) {
      go(Number(button.dataset.go));
    } else if (cell) {
      event.preventDefault();
      for (const field of fields.values()) field.value = "";
      fields.get("rule").value = cell.dataset.rule;
      fields.get("model").value = cell.dataset.model;
      page = 0;
      go(1);
    }
  });
  addEventListener("hashchange", read);
  addEventListener("beforeprint", () => failures.forEach((one) => { one.hidden = !shown.includes(one); }));
  addEventListener("afterprint", show);

  // The sections of the plain page: their headings and links stand for what the script does.
  for (const section of pages) {
    section.querySelector(".range").hidden = true;
    section.removeAttribute("aria-labelledby");
    const links = section.querySelector("nav");
    if (links) links.hidden = true;
  }
  filter.hidden = false;
  read();
})();
