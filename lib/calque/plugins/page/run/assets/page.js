// The page: asks this process every few seconds while somebody looks, and draws what it says.

import { h, morphChildren } from "./dom.js";
import { actionDialog, actionsOf, signIn } from "./actions.js";
import { get, Locked } from "./api.js";
import { drawLags } from "./lags.js";
import { flow, links, problems, problemCount, tables, table } from "./views.js";

const EVERY_MS = { tables: 10000, table: 10000, links: 10000 };
const ELSE_EVERY_MS = 2000;
const main = document.getElementById("main");
const live = document.getElementById("live");
let overview = null;
let drawing = 0;
let offset = 0;
let timer = null;

function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").map(decodeURIComponent);
  return { view: parts[0] || "flow", parts: parts.slice(1), query: new URLSearchParams(query) };
}

function navigation(view) {
  const count = overview ? problemCount(overview) : 0;
  const item = (name, label, extra) =>
    h("a", { href: `#/${name === "flow" ? "" : name}`, "aria-current": view === name ? "page" : null }, label, extra);
  const badge = count ? h("span", { class: "count" }, count, h("span", { class: "skip" }, " problems")) : null;
  return h("nav", {}, item("flow", "Flow"), item("tables", "Tables"), overview?.links ? item("links", "Links") : null, item("problems", "Problems", badge));
}

async function draw() {
  const mine = ++drawing;
  clearTimeout(timer);
  const here = route();
  try {
    overview = await get("overview");
    const fresh = await content(here);
    if (mine !== drawing) return;
    const scroll = main.dataset.view === location.hash;
    main.dataset.view = location.hash;
    if (scroll) morphChildren(main, fresh);
    else main.replaceChildren(...fresh.childNodes);
    live.className = "on";
    live.textContent = `Updated ${new Date(overview.at * 1000).toLocaleTimeString()}`;
    if (here.view === "flow") await drawLags(document.getElementById("lags"), overview.targets);
  } catch (error) {
    if (mine !== drawing) return;
    if (error instanceof Locked) {
      live.textContent = "";
      if (!document.getElementById("token")) main.replaceChildren(signIn(error.message, draw));
      return;
    }
    live.className = "bad";
    live.textContent = `Not up to date: ${error.message}`;
  }
  morphChildren(document.getElementById("nav"), navigation(here.view));
  if (mine === drawing && !document.hidden) timer = setTimeout(draw, EVERY_MS[here.view] ?? ELSE_EVERY_MS);
}

async function content({ view, parts, query }) {
  const box = h("div");
  if (view === "tables") {
    const target = query.get("target") || overview.targets[0]?.name;
    const asked = { target, q: query.get("q") ?? "", state: query.get("state") ?? "", offset };
    box.append(...tables(overview, asked, target ? await get("tables", asked) : { total: 0, tables: [] }));
  } else if (view === "table") {
    box.append(...table(overview, await get("table", { target: parts[0], name: parts[1] })));
  } else if (view === "links") {
    const asked = { q: query.get("q") ?? "", state: query.get("state") ?? "", offset };
    box.append(...links(asked, await get("links", asked)));
  } else if (view === "problems") {
    box.append(...problems(overview));
  } else {
    box.append(...flow(overview));
  }
  return box;
}

let typing = null;
document.addEventListener("input", (event) => {
  const form = event.target.closest("form.search");
  if (!form) return;
  clearTimeout(typing);
  typing = setTimeout(() => {
    offset = 0;
    history.replaceState(null, "", `#/${route().view}?${new URLSearchParams(new FormData(form))}`);
    main.dataset.view = location.hash;
    draw();
  }, 200);
});
document.addEventListener("change", (event) => event.target.id === "span" && draw());
document.addEventListener("submit", (event) => event.target.matches("form.search") && event.preventDefault());
document.addEventListener("click", (event) => {
  const pager = event.target.closest("[data-offset]");
  if (pager) {
    offset = Number(pager.dataset.offset);
    draw();
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
