"use strict";
// What the page can do beyond showing: sort, filter, figures in full, copying, folding, charts. Data enters as text only.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const one = (selector, root = document) => root.querySelector(selector);
  const read = (id) => JSON.parse(document.getElementById(id)?.textContent || "{}");
  const made = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };

  // What the reader chose outlives the reload of a live page; a browser that keeps nothing for files is no error.
  const kept = (() => {
    try { return JSON.parse(sessionStorage.getItem("gate0-notebook") || "{}"); } catch { return {}; }
  })();
  const keep = (name, value) => {
    kept[name] = value;
    try { sessionStorage.setItem("gate0-notebook", JSON.stringify(kept)); } catch { /* not kept */ }
  };

  for (const element of all("[data-js]")) element.hidden = false;

  // Sorting: a value where the field has one, else its words; what has none stays last whichever way.
  const valueOf = (cell) => {
    if (cell === undefined) return null;
    if (cell.dataset.sort !== undefined) return Number(cell.dataset.sort);
    const words = cell.textContent.trim();
    return words === "–" || words === "" || one("s", cell) ? null : words.toLowerCase();
  };
  const isNumeric = (rows, column) => rows.some((row) => row.cells[column]?.dataset.sort !== undefined);
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true }));
  const sort = (table, column, direction) => {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const numeric = isNumeric(rows, column);
    const keyed = rows.map((row) => {
      const value = valueOf(row.cells[column]);
      return { row, value: numeric && typeof value !== "number" ? null : value };
    });
    const sign = direction === "ascending" ? 1 : -1;
    keyed.sort((a, b) => (a.value === null || b.value === null ? (a.value === null) - (b.value === null) : sign * compare(a.value, b.value)));
    body.append(...keyed.map((k) => k.row));
    for (const head of all("thead tr:last-child th", table)) head.removeAttribute("aria-sort");
    table.tHead.rows[table.tHead.rows.length - 1].cells[column].setAttribute("aria-sort", direction);
  };
  for (const table of all("table.sortable")) {
    const id = table.closest(".board")?.id;
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    heads.forEach((head, column) => {
      const button = made("button", { type: "button", class: "sort" });
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const first = head.dataset.first || "ascending";
        const now = head.getAttribute("aria-sort");
        const direction = now === null ? first : now === "ascending" ? "descending" : "ascending";
        sort(table, column, direction);
        keep("sort", { ...kept.sort, [id]: [column, direction] });
      });
    });
    const [column, direction] = kept.sort?.[id] || [];
    if (column < heads.length) sort(table, column, direction);
  }

  // Filters hold for all tables of configurations; the load chooses which of them is shown.
  const form = document.getElementById("board-controls");
  const boards = all(".board");
  const applyFilters = () => {
    const wanted = Object.fromEntries(all("[data-filter]", form).map((input) => [input.dataset.filter, input.value.trim()]));
    const words = wanted.text.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (row) =>
      ["engine", "model", "verdict"].every((name) => !wanted[name] || row.dataset[name] === wanted[name]) &&
      (!wanted.host || row.dataset.host.split("\n").includes(wanted.host)) &&
      words.every((word) => row.textContent.toLowerCase().includes(word));
    for (const row of all(".board tbody tr, .board-left tbody tr")) row.hidden = !fits(row);
    const board = boards.find((b) => !b.hidden);
    const rows = board ? all("tbody tr", board) : [];
    const shown = rows.filter((row) => !row.hidden).length;
    document.getElementById("board-count").textContent = `${shown} of ${rows.length} shown`;
  };
  const chooseLoad = () => {
    const choice = document.getElementById("choose-load");
    if (choice !== null) for (const board of boards) board.hidden = board.id !== choice.value;
  };
  if (form !== null) {
    for (const [name, value] of Object.entries(kept.filters || {})) {
      const input = form.elements.namedItem(name);
      if (input !== null) {
        const before = input.value;
        input.value = value;
        if (input.value !== value) input.value = before;
      }
    }
    const update = () => {
      chooseLoad();
      applyFilters();
      keep("filters", Object.fromEntries(new FormData(form)));
    };
    form.addEventListener("input", update);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(update));
    chooseLoad();
    applyFilters();
  }

  // Folding: everything is open in the file, so that nothing is lost without a script.
  const isTarget = (element) => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    return Boolean(target) && element.contains(target);
  };
  for (const element of all("details[data-folds]")) element.open = isTarget(element) || Boolean(element.id && kept.open?.includes(element.id));
  let folding = 0;
  const keepOpen = () => keep("open", all("details[data-folds][open][id]").map((e) => e.id));
  document.addEventListener("toggle", () => {
    clearTimeout(folding);
    folding = setTimeout(keepOpen, 200);
  }, true);
  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let e = target; e !== null; e = e.parentElement) {
      if (e.tagName === "DETAILS") e.open = true;
      if (e.classList.contains("board") && e.hidden) {
        document.getElementById("choose-load").value = e.id;
        chooseLoad();
      }
    }
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  if (location.hash) reveal();
  for (const button of all("[data-fold]")) {
    button.addEventListener("click", () => {
      for (const element of all("details.config")) element.open = button.dataset.fold === "open";
    });
  }
  let foldedForPaper = [];
  addEventListener("beforeprint", () => {
    foldedForPaper = all("details:not([open])");
    for (const element of foldedForPaper) element.open = true;
  });
  addEventListener("afterprint", () => {
    for (const element of foldedForPaper) element.open = false;
  });

  // A figure in full: opens on hover and on focus, stays on a click, closes with Escape.
  const popover = document.getElementById("popover");
  const { head = [], cells = {} } = read("popovers");
  let owner = null;
  let isPinned = false;
  let timer = 0;
  const fill = ([title, cell, lines, said, record], detail) => {
    const links = made("p", { class: "links" }, made("a", { href: `#${detail}` }, "detail"));
    if (record !== null) links.append(" · ", made("a", { href: record }, "raw record"));
    const row = (tag, values) => made("tr", {}, ...values.map((v, i) => made(tag, i === 0 || i > 3 ? { class: "text" } : {}, String(v ?? ""))));
    const table = made("table", {}, made("thead", {}, row("th", head)), made("tbody", {}, ...lines.map((line) => row("td", line))));
    popover.replaceChildren(
      made("p", { class: "title" }, made("strong", {}, title), made("br"), made("span", { class: "soft" }, cell)),
      ...(lines.length ? [table] : []),
      ...said.map((words) => made("p", { class: words.startsWith("invalid") ? "bad" : "soft" }, words)),
      links,
    );
  };
  // Never over its own figure: the end of a tap would fall on the popover, and be no click on the figure.
  const place = () => {
    const at = owner.getBoundingClientRect();
    popover.style.maxHeight = "";
    const { width, height } = popover.getBoundingClientRect();
    const above = at.top - 8;
    const below = innerHeight - at.bottom - 8;
    const isBelow = height <= below || below >= above;
    const shown = Math.min(height, Math.max(isBelow ? below : above, 64));
    popover.style.maxHeight = `${shown}px`;
    popover.style.left = `${Math.max(8, Math.min(at.left, document.documentElement.clientWidth - width - 8))}px`;
    popover.style.top = `${isBelow ? at.bottom + 4 : at.top - 4 - shown}px`;
  };
  const close = () => {
    clearTimeout(timer);
    if (owner === null) return;
    const hadFocus = popover.contains(document.activeElement);
    owner.setAttribute("aria-expanded", "false");
    popover.hidden = true;
    if (hadFocus) owner.focus();
    owner = null;
    isPinned = false;
  };
  const open = (figure) => {
    clearTimeout(timer);
    if (owner === figure) return;
    close();
    const detail = decodeURIComponent(figure.hash.slice(1));
    const cell = cells[detail];
    if (cell === undefined) return;
    owner = figure;
    fill(cell, detail);
    figure.after(popover); // so that the next Tab goes into it
    figure.setAttribute("aria-expanded", "true");
    popover.hidden = false;
    place();
  };
  const figureOf = (event) => event.target.closest?.("a.figure[data-popover]");
  for (const figure of all("a.figure[data-popover]")) {
    figure.setAttribute("aria-haspopup", "dialog");
    figure.setAttribute("aria-expanded", "false");
    figure.setAttribute("aria-controls", "popover");
    figure.setAttribute("role", "button");
  }
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType !== "mouse") return;
    const figure = figureOf(event);
    clearTimeout(timer);
    if (figure && !isPinned) timer = setTimeout(() => open(figure), 120);
    else if (owner !== null && !isPinned && !popover.contains(event.target) && event.target !== owner) timer = setTimeout(close, 250);
  });
  document.addEventListener("focusin", (event) => {
    const figure = figureOf(event);
    if (figure) open(figure);
    else if (owner !== null && !popover.contains(event.target)) close();
  });
  document.addEventListener("click", (event) => {
    const figure = figureOf(event);
    if (figure) {
      event.preventDefault();
      const isSame = owner === figure && isPinned;
      open(figure);
      isPinned = true;
      if (isSame) close();
    } else if (owner !== null && (!popover.contains(event.target) || event.target.closest("a"))) close();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    if (event.key === " " && figureOf(event)) {
      event.preventDefault();
      event.target.click();
    }
  });
  addEventListener("scroll", () => owner !== null && place(), { capture: true, passive: true });
  addEventListener("resize", () => owner !== null && place());

  // Copying: by the clipboard, else the text is selected for the reader to copy.
  for (const button of all("[data-copy]")) {
    const said = button.textContent;
    button.addEventListener("click", async () => {
      const source = document.getElementById(button.dataset.copy);
      let isDone = false;
      try {
        await navigator.clipboard.writeText(source.textContent);
        isDone = true;
      } catch {
        getSelection().selectAllChildren(source);
        try { isDone = document.execCommand("copy"); } catch { /* the text is selected */ }
      }
      button.textContent = isDone ? "Copied" : "Selected: copy it now";
      setTimeout(() => { button.textContent = said; }, 2000);
    });
  }

  // Charts: mounted when they come into sight, in the colours of the page, again when those change.
  const specs = read("charts");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const themed = () => {
    const css = getComputedStyle(document.documentElement);
    const [text, soft, line] = ["--text", "--soft", "--line"].map((name) => css.getPropertyValue(name).trim());
    const font = getComputedStyle(document.body).fontFamily;
    return {
      background: "transparent",
      font,
      view: { stroke: "transparent" },
      axis: { labelColor: soft, titleColor: soft, titleFontWeight: "normal", gridColor: line, domainColor: line, tickColor: line },
      legend: { labelColor: text, titleColor: soft, titleFontWeight: "normal" },
      header: { labelColor: text, titleColor: soft },
      text: { color: text },
      rule: { color: soft },
      title: { color: text },
    };
  };
  const views = new Map();
  const mount = async (plot) => {
    const spec = specs[plot.dataset.chart];
    if (spec === undefined || typeof vegaEmbed !== "function") return;
    views.get(plot)?.finalize();
    const options = { actions: false, renderer: "svg", ast: true, logLevel: 1, config: themed(), tooltip: { theme: dark.matches ? "dark" : "light" } };
    try {
      views.set(plot, await vegaEmbed(plot, spec, options));
      plot.dataset.mounted = "";
      one("svg", plot)?.setAttribute("aria-hidden", "true"); // its frame says what it shows
    } catch (error) {
      plot.textContent = `The picture could not be drawn: ${error.message}`;
    }
  };
  document.addEventListener("DOMContentLoaded", () => {
    const seen = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        seen.unobserve(entry.target);
        mount(entry.target);
      }
    }, { rootMargin: "300px" });
    for (const plot of all("[data-chart]")) seen.observe(plot);
  });
  dark.addEventListener("change", () => { for (const plot of [...views.keys()]) mount(plot); });
  addEventListener("beforeprint", () => { for (const plot of all("[data-chart]:not([data-mounted])")) mount(plot); });
})();
