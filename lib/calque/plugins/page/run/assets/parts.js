// Pieces that several views have: badges, lists of facts, links to tables, errors.

import { h } from "./dom.js";
import { age, one, seconds, time } from "./format.js";

const STATES = {
  running: ["good", "●"], starting: ["busy", "◌"], bootstrapping: ["busy", "◐"], paused: ["warning", "Ⅱ"],
  failing: ["wrong", "▲"], stopped: ["idle", "■"], failed: ["wrong", "▲"],
  live: ["good", "●"], unknown: ["busy", "?"], reading: ["busy", "◐"], staging: ["busy", "◑"], waiting: ["warning", "…"],
  quarantined: ["wrong", "▲"], gone: ["idle", "∅"], set_aside: ["wrong", "▲"], unreachable: ["warning", "⌁"],
  repairing: ["busy", "◐"], repaired: ["good", "●"], held: ["warning", "Ⅱ"], done: ["good", "●"],
  wrong: ["wrong", "▲"], aside: ["wrong", "▲"], late: ["warning", "…"], news: ["idle", "○"],
};

export const badge = (state, text = state) => {
  const [kind, sign] = STATES[state] ?? ["idle", "■"];
  return h("span", { class: `badge ${kind}` }, h("span", { "aria-hidden": "true" }, `${sign} `), text);
};

export const facts = (...pairs) =>
  h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));

export const tableLink = (target, name) =>
  h("a", { href: `#/table/${encodeURIComponent(target)}/${encodeURIComponent(name)}` }, name);

export const tablesLink = (query, ...text) => h("a", { href: `#/tables?${new URLSearchParams(query)}` }, text);

// Since when something fails, how often it was tried, and when it is tried next.
export function tries({ failing, state }) {
  if (!failing) return null;
  const next = failing.next ? `, next ${age(failing.next)}` : "";
  const word = state === "failed" ? "failed" : failing.attempts > 1 ? "failing" : "an error";
  return [`${word} since `, time(failing.since), ` (${age(failing.since)}), ${one(failing.attempts, "attempt")}${next}`];
}

export const trouble = (each) => each.problem ? [
  h("p", { class: "problem small" }, h("strong", {}, tries(each) ?? "an error")), h("p", { class: "problem small" }, each.problem)] : null;

export const lagText = (each) => each.lag_events ? `${seconds(each.lag_seconds)}, ${one(each.lag_events, "event")}` : "none";

// A table that becomes a list on a narrow screen. A cell is a pair: what is in it, and attributes.
export function grid(heads, rows, attributes = {}) {
  return h("div", { class: "rows", ...attributes }, h("table", {},
    h("thead", {}, h("tr", {}, heads.map((head) => (head instanceof Node && head.nodeName === "TH" ? head : h("th", { scope: "col" }, head))))),
    h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map(([content, more]) => h("td", more ?? {}, content)))))));
}

export const cell = (label, content) => [content, { class: "num", "data-label": `${label} ` }];
