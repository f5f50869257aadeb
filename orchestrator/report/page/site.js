"use strict";
// What a page of a site needs beside `page.js`: links that it makes itself lead to the page that has their target.
(() => {
  const places = JSON.parse(document.getElementById("places").textContent);
  const pageOf = (id) => {
    for (let name = id; name; name = name.slice(0, Math.max(0, name.lastIndexOf("--")))) {
      if (Object.hasOwn(places, name)) return places[name];
    }
    return undefined;
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (!link || link.matches("a.figure[data-popover]")) return;
    const id = decodeURIComponent(link.getAttribute("href").slice(1));
    if (document.getElementById(id) !== null) return;
    const page = pageOf(id);
    if (page !== undefined) link.setAttribute("href", `${page}#${id}`);
  }, true);

  // The page of one configuration is about it: nothing of it is folded away.
  if (Object.keys(places).length === 0) for (const element of document.querySelectorAll("details.config")) element.open = true;
})();
