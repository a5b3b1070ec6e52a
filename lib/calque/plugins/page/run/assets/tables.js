// The views of tables and links: lists that the process searches and sorts, and the chain of one table.

import { h, s } from "./dom.js";
import { actionButtons, notAllowed } from "./actions.js";
import { aged, number, one, size, words } from "./format.js";
import { LINK_STATES } from "./flow.js";
import { badge, cell, facts, grid, lagText, tableLink } from "./parts.js";
import { term } from "./terms.js";

const LEGEND = { shown: "shown", passed_over: "passed over", waiting: "waits", before: "older than the ledger" };
const ORDERS = {
  name: "name", "-name": "name, from the end", state: "state, the worst first", "-state": "state, live first",
  lag: "lag, the greatest first", "-lag": "lag, the least first", size: "size, the greatest first", "-size": "size, the least first",
};
const option = (value, label, selected) => h("option", { value, selected }, label);

// A search over what is told by name and state, with a page of what was found.
function list(title, noun, asked, states, before, after, found, rows, heads, row) {
  const last = Math.min(found.offset + rows.length, found.total);
  return [
    h("h1", {}, title),
    h("form", { class: "search", role: "search" }, before,
      h("label", { class: "wide" }, "Name (a part of it, or a glob such as sales.*)", h("input", { name: "q", type: "search", value: asked.q, autocomplete: "off", spellcheck: "false" })),
      h("label", {}, "State", h("select", { name: "state" }, option("", "all", !asked.state), states.map((state) => option(state, words(state), state === asked.state)))),
      after),
    h("p", { class: "dim", role: "status" }, found.total ? `${number(found.offset + 1)} to ${number(last)} of ${one(found.total, noun)}` : `No ${noun}.`),
    grid(heads, rows.map(row), { "data-dense": true }),
    h("div", { class: "pager" },
      h("button", { type: "button", "data-offset": Math.max(found.offset - 50, 0), disabled: !found.offset }, "Previous"),
      h("button", { type: "button", "data-offset": last, disabled: last >= found.total }, "Next")),
  ];
}

export function links(asked, found) {
  return list("Links", "link", asked, LINK_STATES, null, null, found, found.links, ["link", "state", h("th", { scope: "col" }, term("shows event")), "connected to, reason"], (row) => [
    [row.name], [badge(row.state, words(row.state))], cell("shows event", row.event_id === null ? "nothing" : number(row.event_id)),
    [[`${row.connected_to} via ${row.via}`, row.reason ? h("p", {}, row.reason) : null], { class: "full small" }]]);
}

// A heading that sorts: pressed again, it turns the order round.
function head(asked, order, label) {
  const is = asked.order === order ? "descending" : asked.order === `-${order}` ? "ascending" : null;
  return h("th", { scope: "col", "aria-sort": is },
    h("button", { type: "button", class: "sort", "data-order": asked.order === order ? `-${order}` : order }, label, h("span", { "aria-hidden": "true" }, is === "descending" ? " ▾" : is ? " ▴" : "")));
}

export function tables(overview, asked, found) {
  const target = h("label", {}, "Target", h("select", { name: "target" }, overview.targets.map((each) => option(each.name, each.name, each.name === asked.target))));
  const order = h("label", {}, "Order", h("select", { name: "order" }, Object.entries(ORDERS).map(([value, label]) => option(value, label, value === asked.order))));
  const states = ["live", "reading", "staging", "waiting", "unknown", "quarantined"];
  const position = overview.targets.find((each) => each.name === asked.target)?.position ?? null;
  const heads = [head(asked, "name", "table"), head(asked, "state", "state"), head(asked, "lag", "lag"), head(asked, "size", "size"), h("th", { scope: "col" }, term("shows event"), ", reason")];
  const export_ = (format) => h("a", { href: `api/export?${new URLSearchParams({ target: asked.target ?? "", q: asked.q, state: asked.state, order: asked.order, format })}`, "data-save": `tables.${format}`, download: true }, format.toUpperCase());
  return [
    ...list("Tables", "table", asked, states, target, order, found, found.tables, heads, (row) => [
      [[tableLink(asked.target, row.table), row.at_target ? h("span", { class: "dim small" }, ` as ${row.at_target}`) : null]],
      [badge(row.state)],
      cell("lag", row.lag_events === null ? "–" : lagText(row)),
      cell("size", row.bytes === null ? "–" : `${size(row.bytes)}, ${one(row.files, "file")}`),
      [row.state === "live" ? "" : [row.shows === null ? "shows nothing" : `shows event ${number(row.shows)}`, row.reason ? `: ${row.reason}` : ""], { class: "full small" }]]),
    h("p", { class: "small" }, "All of this search as ", export_("csv"), " or ", export_("json"), "."),
    h("p", { class: "small dim" }, position === null ? "" : `Live tables show event ${number(position)} or a later one. `,
      found.has_sizes ? "Sizes are those of the files that the ledger records." : "Sizes are counted from the ledger, or are not known."),
  ];
}

export function table(overview, found) {
  const chain = [...found.links].reverse();
  return [
    h("p", { class: "small" }, h("a", { href: `#/tables?${new URLSearchParams({ target: found.target })}` }, `Tables of ${found.target}`)),
    h("div", { class: "row" }, h("h1", {}, found.table), badge(found.state)),
    h("div", { class: `card ${found.state === "quarantined" ? "bad" : ""}` },
      facts(["target", found.target], found.at_target && ["name there", found.at_target],
        [term("shows event"), found.shows === null ? "nothing" : number(found.shows)], [term("position", "target's position"), number(found.position)],
        found.lag_events !== undefined && found.lag_events !== null && [term("lag"), lagText(found)],
        found.bytes !== undefined && found.bytes !== null && ["size", `${size(found.bytes)}, ${one(found.files, "file")}`]),
      found.reason ? h("p", {}, found.reason) : null,
      found.what_to_do ? h("p", { class: "small" }, h("strong", {}, "What to do: "), found.what_to_do, " ", h("code", {}, found.command)) : null,
      h("details", {}, h("summary", {}, "Actions"), notAllowed(overview),
        actionButtons(["pause", "resume", "verify", "repair", "release", ...(found.is_held ? ["release-drops"] : [])], found.target, found.table, overview.may_act))),
    h("h2", {}, "Its chain, newest first"),
    h("p", { class: "legend small dim" }, Object.entries(LEGEND).map(([fate, label]) => h("span", {}, s("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, s("circle", { class: `dot ${fate}`, cx: 8, cy: 8, r: 6 })), ` ${label}`))),
    chain.length ? h("ol", { class: "chain", reversed: true }, chain.map((link, place) => item(link, chain[place - 1], chain[place + 1])))
      : h("p", { class: "dim" }, "Neither the journal nor the ledger remembers an event of this table."),
    h("p", { class: "small dim" }, `${found.cut ? `${one(found.cut, "older event")} not drawn. ` : ""}The journal was looked at back to event ${number(found.looked_back_to + 1)}.`),
  ];
}

const railOf = (link) => (link.fate === "waiting" ? "rail waits" : link.fate === "before" ? "rail unknown" : "rail");

// A row of the picture: the rail is what the target showed; what it passed over lies beside it.
function item(link, newer, older) {
  const beside = link.fate === "passed_over";
  const x = beside ? 40 : 18;
  const picture = s("svg", { "aria-hidden": "true" },
    newer ? s("line", { class: railOf(newer), x1: 18, y1: 0, x2: 18, y2: 24 }) : null,
    older ? s("line", { class: railOf(link), x1: 18, y1: 24, x2: 18, y2: "100%" }) : null,
    beside ? s("line", { class: "off", x1: 18, y1: 24, x2: 40, y2: 24 }) : null,
    s("circle", { class: `dot ${link.fate} ${link.bridge ? "bridge" : ""}`, cx: x, cy: 24, r: link.fate === "shown" ? 8 : 6 }));
  const changes = Object.entries(link.changes ?? {}).map(([change, count]) => (count > 1 ? `${count} × ${change}` : change)).join(", ");
  return h("li", {}, picture, h("div", { class: "what" },
    h("div", { class: "row" }, h("span", {}, h("strong", { class: "num" }, `event ${number(link.event_id)}`), ` ${link.kind.replaceAll("_", " ")}`, link.partitions ? `, ${one(link.partitions, "partition")}` : "", link.was ? `, was ${link.was}` : "", link.now ? `, now ${link.now}` : ""),
      h("span", { class: "small dim" }, link.bridge ? "bridge" : LEGEND[link.fate])),
    h("p", { class: "small dim" }, aged(link.event_time)),
    link.fate === "shown" ? h("p", { class: "small" }, `${changes}${link.files ? `: ${one(link.files, "file")}, ${size(link.bytes)}` : ""}`, link.epoch === null ? "" : [`; epoch ${number(link.epoch)}, `, aged(link.published_at)]) : null,
    link.why ? h("p", { class: "small" }, link.why) : null));
}
