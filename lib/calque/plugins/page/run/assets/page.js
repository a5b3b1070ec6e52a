// The page: asks this process every few seconds while somebody looks, and draws what it says.

import { h, morphChildren } from "./dom.js";
import { about, foot } from "./about.js";
import { actionDialog, actionsOf, signIn } from "./actions.js";
import { get, hasToken, Locked, save } from "./api.js";
import { flow } from "./flow.js";
import { clock, setNow } from "./format.js";
import { drawLags, lagSummary, updateLags } from "./lags.js";
import { problems } from "./problems.js";
import { links, table, tables } from "./tables.js";

const EVERY_MS = { tables: 10000, table: 10000, links: 10000, about: 10000 };
const ELSE_EVERY_MS = 2000;
const main = document.getElementById("main");
const live = document.getElementById("live");
let overview = null;
let known = null;
let drawing = 0;
let offset = 0;
let timer = null;

function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").map(decodeURIComponent);
  return { view: parts[0] || "flow", parts: parts.slice(1), query: new URLSearchParams(query) };
}

function navigation(view) {
  const count = overview?.problem_count ?? 0;
  const item = (name, label, extra) =>
    h("a", { href: `#/${name === "flow" ? "" : name}`, "aria-current": view === name ? "page" : null }, label, extra);
  const badge = count ? h("span", { class: "count" }, count, h("span", { class: "skip" }, " problems")) : null;
  return h("nav", {}, item("flow", "Flow"), item("tables", "Tables"), overview?.links ? item("links", "Links") : null, item("problems", "Problems", badge));
}

// What a tab and a screen reader say first: how many problems there are, the worst of them, and the view.
function title({ view, parts }) {
  const name = view === "table" ? parts[1] : view[0].toUpperCase() + view.slice(1);
  const worst = overview?.problem_count ? `(${overview.problem_count}) ${overview.headline} – ` : "";
  return `${live.className === "bad" ? "Not up to date – " : worst}${name} – calque`;
}

async function draw() {
  const mine = ++drawing;
  clearTimeout(timer);
  const here = route();
  try {
    overview = await get("overview");
    if (known?.began !== overview.began) known = await get("about");
    setNow(overview.at);
    const fresh = await content(here);
    if (mine !== drawing) return;
    const scroll = main.dataset.view === location.hash;
    main.dataset.view = location.hash;
    if (scroll) morphChildren(main, fresh);
    else main.replaceChildren(...fresh.childNodes);
    live.className = "on";
    live.textContent = `Updated ${clock(overview.at)} UTC`;
    morphChildren(document.getElementById("foot"), h("div", {}, foot(known)));
    if (here.view === "flow") drawLags(document.getElementById("lags"), overview.targets);
  } catch (error) {
    if (mine !== drawing) return;
    if (error instanceof Locked) {
      live.textContent = "";
      document.title = "Token – calque";
      if (!main.querySelector("#token")) main.replaceChildren(signIn(error.message, draw));
      return;
    }
    live.className = "bad";
    live.textContent = `Not up to date: ${error.message}`;
  }
  document.title = title(here);
  morphChildren(document.getElementById("nav"), navigation(here.view));
  if (mine === drawing && !document.hidden) timer = setTimeout(draw, EVERY_MS[here.view] ?? ELSE_EVERY_MS);
}

async function content({ view, parts, query }) {
  const box = h("div");
  if (view === "tables") {
    const target = query.get("target") || overview.targets[0]?.name;
    const asked = { target, q: query.get("q") ?? "", state: query.get("state") ?? "", order: query.get("order") || "name", offset };
    box.append(...tables(overview, asked, target ? await get("tables", asked) : { total: 0, tables: [] }));
  } else if (view === "table") {
    box.append(...table(overview, await get("table", { target: parts[0], name: parts[1] })));
  } else if (view === "links") {
    const asked = { q: query.get("q") ?? "", state: query.get("state") ?? "", offset };
    box.append(...links(asked, await get("links", asked)));
  } else if (view === "problems") {
    box.append(...problems(overview, known.docs));
  } else if (view === "about") {
    box.append(...about(known));
  } else {
    await updateLags();
    box.append(...flow(overview, lagSummary(overview.targets)));
  }
  return box;
}

// Ask for the list of a form anew: its fields become the address.
function search(form) {
  offset = 0;
  history.replaceState(null, "", `#/${route().view}?${new URLSearchParams(new FormData(form))}`);
  main.dataset.view = location.hash;
  draw();
}

let typing = null;
document.addEventListener("input", (event) => {
  const form = event.target.matches("input") && event.target.closest("form.search");
  if (!form) return;
  clearTimeout(typing);
  typing = setTimeout(search, 200, form);
});
document.addEventListener("change", (event) => {
  const form = event.target.matches("select") && event.target.closest("form.search");
  if (form) search(form);
  if (event.target.id === "span") draw();
});
document.addEventListener("submit", (event) => event.target.matches("form.search") && event.preventDefault());
document.addEventListener("click", (event) => {
  const pager = event.target.closest("[data-offset]");
  if (pager) {
    offset = Number(pager.dataset.offset);
    draw();
  }
  const sort = event.target.closest("[data-order]");
  if (sort) {
    const form = document.querySelector("form.search");
    form.elements.order.value = sort.dataset.order;
    search(form);
  }
  const saved = event.target.closest("[data-save]");
  if (saved && hasToken()) {
    event.preventDefault();
    save(saved).catch((error) => { live.textContent = error.message; });
  }
  const button = event.target.closest("[data-action]");
  if (button) actionDialog(actionsOf(button), draw);
});
addEventListener("hashchange", () => {
  if (!location.hash.startsWith("#/") && location.hash !== "") return;
  offset = 0;
  draw().then(() => main.focus({ preventScroll: true }));
  scrollTo(0, 0);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
document.addEventListener("visibilitychange", () => !document.hidden && draw());
draw();
