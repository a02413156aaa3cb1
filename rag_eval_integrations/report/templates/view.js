"use strict";
// Keeps a list fresh: every two seconds, or as seldom as the page says, it asks for the page, which
// the server renders where something has changed, and puts in place what differs. What is picked,
// open and focused stays.
(() => {
  const gone = document.getElementById("gone");
  let tag = "";

  function keep(old, fresh) {
    // An element as it is now, in place of the old one, with what a person did to that.
    const picked = new Set([...old.querySelectorAll("input:checked")].map((box) => box.value));
    for (const box of fresh.querySelectorAll("input")) box.checked = picked.has(box.value);
    for (const [place, one] of [...fresh.querySelectorAll("details")].entries()) {
      one.open = old.querySelectorAll("details")[place]?.open ?? false;
    }
    old.replaceWith(fresh);
  }
  const parts = "a, button, input, summary";
  function focused() {
    // What has the focus, by the element with a name that it is in: that may be another one later.
    const whole = document.activeElement.closest("[id]");
    const at = whole ? [...whole.querySelectorAll(parts)].indexOf(document.activeElement) : -1;
    return () => {
      if (document.activeElement !== document.body || at < 0) return;
      document.getElementById(whole.id)?.querySelectorAll(parts)[at]?.focus({ preventScroll: true });
    };
  }
  const rowsOf = (element) => element.querySelector("tbody");
  const headOf = (element) => element.querySelector("thead")?.outerHTML;
  function refresh(old, fresh) {
    const body = rowsOf(old);
    if (!body || !rowsOf(fresh) || headOf(old) !== headOf(fresh) || !body.querySelector("tr[id]")) {
      if (old.outerHTML !== fresh.outerHTML) keep(old, document.importNode(fresh, true));
      return;
    }
    old.querySelector("h2").textContent = fresh.querySelector("h2").textContent;
    const known = new Map([...body.children].map((row) => [row.id, row]));
    let place = null;
    for (const row of [...rowsOf(fresh).children]) {
      let mine = known.get(row.id);
      known.delete(row.id);
      if (!mine) mine = document.importNode(row, true);
      else if (mine.outerHTML !== row.outerHTML) {
        const newer = document.importNode(row, true);
        keep(mine, newer);
        mine = newer;
      }
      const next = place ? place.nextSibling : body.firstChild;
      if (mine !== next) body.insertBefore(mine, next);
      place = mine;
    }
    for (const row of known.values()) row.remove();
  }

  async function ask() {
    try {
      const response = await fetch(location.href, { headers: { "If-None-Match": tag } });
      gone.hidden = response.ok || response.status === 304;
      gone.textContent = gone.hidden ? "" : "The server was started anew: open the address that it printed.";
      if (!response.ok) return;
      tag = response.headers.get("ETag") || "";
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const focusAgain = focused();
      for (const fresh of page.querySelectorAll("[data-live]")) {
        const old = document.getElementById(fresh.id);
        if (old) refresh(old, fresh);
      }
      focusAgain();
    } catch {
      gone.textContent = "The server does not answer; this is what it said last.";
      gone.hidden = false;
    }
  }
  async function again() {
    if (!document.hidden) await ask();
    setTimeout(again, 1000 * (gone.dataset.every || 2));
  }
  setTimeout(again, 1000 * (gone.dataset.every || 2));
})();
