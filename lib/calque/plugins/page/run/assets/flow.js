// The view of the flow: sources, journals, targets, lags, and what was done last.

import { h } from "./dom.js";
import { actionButtons, notAllowed } from "./actions.js";
import { age, aged, clock, number, one, seconds, size, time, words } from "./format.js";
import { badge, cell, facts, grid, lagText, tablesLink, tableLink, trouble } from "./parts.js";
import { term } from "./terms.js";

const LOW_BYTES = 1e9;

export function flow(overview, lags) {
  return [
    h("h1", {}, "Flow"),
    overview.silent.length ? h("p", { class: "problem", role: "alert" }, `Does not turn: ${overview.silent.join(", ")}`) : null,
    h("div", { class: "flow" },
      h("div", { class: "upstream" }, overview.sources.map(source)),
      h("div", { class: "arrow", "aria-hidden": "true" }, "→"),
      h("div", { class: "targets" }, overview.targets.map((each) => target(each, overview)), overview.unserved.map(unserved))),
    h("div", { class: "row" }, h("h2", {}, term("lag", "Lag"), " over time"),
      h("label", {}, h("span", { class: "skip" }, "Span"), h("select", { id: "span" }, h("option", { value: 1800 }, "30 minutes"), h("option", { value: 86400 }, "24 hours")))),
    h("div", { id: "lags", class: "plot", "data-keep": true, role: "img", "aria-label": lags.sentence }),
    lagTable(lags),
    ...epochs(overview), ...channels(overview), ...linked(overview), ...clusters(overview), ...elsewhere(overview), ...undertakings(overview),
  ].filter(Boolean);
}

function source(each) {
  const behind = each.head === null || each.journal === null ? null : Math.max(each.head - each.journal, 0);
  return [
    h("section", { class: `card ${each.problem ? "bad" : ""}`, "aria-label": `Source ${each.name}` },
      h("div", { class: "row" }, h("h3", {}, each.name), each.state ? badge(each.state) : badge("stopped", "captured elsewhere")),
      h("p", { class: "dim small" }, "source"),
      each.captured_here ? facts([term("head"), number(each.head)], ["newest event", aged(each.newest_at)]) : null,
      trouble(each)),
    h("div", { class: "down", "aria-hidden": "true" }, "↓"),
    h("section", { class: "card", "aria-label": `Journal of ${each.name}` }, h("h3", {}, term("journal")),
      each.captured_here ? facts(["newest event", number(each.journal)],
        ["behind the source", behind === null ? "–" : behind ? `${one(behind, "event")}, ${seconds(each.lag_seconds)}` : "by nothing"]) : null),
  ];
}

function target(each, overview) {
  const rules = overview.rules[each.name] ?? [];
  const shown = Object.entries(each.tables).filter(([, count]) => count);
  const look = each.problem ? "bad" : each.state === "paused" ? "warn" : each.epoch === null ? "never" : "";
  return h("section", { class: `card ${look}`, "aria-label": `Target ${each.name}` },
    h("div", { class: "row" }, h("h3", {}, each.name), badge(each.state)),
    trouble(each),
    each.epoch === null ? h("p", { class: "dim small" }, "It has no epoch yet: it never ran to its first one.") : null,
    facts(
      [term("position"), number(each.position)],
      [term("lag"), each.position === null ? "–" : lagText(each)],
      each.as_of !== null && [term("as of"), aged(each.as_of)],
      each.epoch !== null && [term("epoch"), [number(each.epoch), each.published_at ? [", ", aged(each.published_at)] : ""]],
      each.events_per_second !== null && ["speed", speed(each)],
      ["last verify", verified(each)],
      each.free_bytes !== null && each.free_bytes < LOW_BYTES && ["free", h("strong", { class: "problem" }, size(each.free_bytes))],
      overview.sources.length > 1 && ["source", each.source]),
    h("ul", { class: "states", "aria-label": "Tables by state" }, shown.map(([state, count]) =>
      h("li", {}, tablesLink({ target: each.name, state }, badge(state, `${number(count)} ${state}`))))),
    each.reading ? work("Reading", each.reading, `${number(each.reading.tables_done)} of ${one(each.reading.tables, "table")}`, each.reading.tables_done, each.reading.tables) : null,
    each.copying ? work("Copying", each.copying, `${size(each.copying.bytes_done)} of ${size(each.copying.bytes)}`, each.copying.bytes_done, each.copying.bytes) : null,
    rules.length ? h("p", { class: "small dim" }, `tables: ${rules.join(", ")}`) : null,
    each.lagging.length ? h("details", {}, h("summary", {}, "Tables farthest behind"), h("ul", {}, each.lagging.map((lag) =>
      h("li", { class: "small" }, tableLink(each.name, lag.table), ` ${one(lag.lag_events, "event")}, ${seconds(lag.lag_seconds)}`)))) : null,
    h("details", {}, h("summary", {}, "Actions"), notAllowed(overview),
      actionButtons(each.state === "paused" ? ["resume", "verify", "repair"] : ["pause", "verify", "repair"], each.name, null, overview.may_act)));
}

function unserved(name) {
  return h("section", { class: "card never", "aria-label": `Target ${name}` },
    h("div", { class: "row" }, h("h3", {}, name), badge("stopped", "no process")),
    h("p", { class: "dim small" }, "The configuration has this target, and no process replicates to it."),
    h("p", { class: "small" }, h("code", {}, `calque run --target ${name}`)));
}

function speed(each) {
  const rate = `${number(each.events_per_second)} event${each.events_per_second === 1 ? "" : "s"}/s`;
  return each.catches_up_at === null ? rate : [`${rate}, caught up about `, time(each.catches_up_at), ` (${age(each.catches_up_at)})`];
}

function verified({ verified: found }) {
  if (!found) return "never";
  const which = found.is_whole ? "" : "some tables ";
  const result = found.differences ? h("strong", { class: "problem" }, `${one(found.differences, "difference")} `) : "equal ";
  return [which, result, `at event ${number(found.event_id)}, `, aged(found.at)];
}

function work(label, each, text, done, all) {
  const left = each.ends_at ? Math.max(each.ends_at - Date.now() / 1000, 0) : null;
  return h("div", { class: "small" }, h("div", { class: "row" }, h("span", {}, `${label}: ${text}`), left === null ? null : h("span", { class: "dim" }, `about ${seconds(left)} left`)),
    h("progress", { value: done, max: Math.max(all, 1), "aria-label": `${label} ${text}` }));
}

function lagTable(lags) {
  return h("details", {}, h("summary", {}, "The lag as text"),
    grid(["target", "now", "95 % of the time at most", "at most"], lags.rows.map((row) => [
      [row.name], cell("now", row.now), cell("95 %", row.usual), cell("at most", row.most)])));
}

function epochs(overview) {
  if (!overview.epochs.length) return [];
  return [h("h2", {}, "Newest ", term("epoch", "epochs")), grid(
    ["when (UTC)", "target", "epoch", "event", "kind", "tables", h("th", { scope: "col" }, term("hop", "hops")), "files", "bytes"],
    overview.epochs.map((each) => [
      [[h("time", { datetime: new Date(each.at * 1000).toISOString() }, clock(each.at)), h("span", { class: "dim" }, ` ${age(each.at)}`)]],
      [each.target], cell("epoch", number(each.epoch)), cell("event", number(each.event_id)), [each.kind], cell("tables", number(each.tables)),
      cell("hops", number(each.hops)), cell("files", number(each.files)), cell("", size(each.bytes))]), { "data-dense": true })];
}

function channels(overview) {
  if (!overview.channels.length) return [];
  return [h("h2", {}, "Notices"), h("ul", { class: "list" }, overview.channels.map((each) =>
    h("li", { class: `card ${each.problem ? "bad" : ""}` }, h("div", { class: "row" }, h("h3", {}, each.name), badge(each.state)),
      h("p", { class: "small dim" }, `at ${each.at}, ${each.lag_events === null ? "lag not known" : `${one(each.lag_events, "event")} not sent`}`),
      trouble(each))))];
}

export const LINK_STATES = ["live", "reading", "unreachable", "gone", "set_aside"];

function linked({ links }) {
  if (!links) return [];
  return [h("h2", {}, "Links"), h("ul", { class: "states", "aria-label": "Links by state" }, LINK_STATES.filter((state) => links.states[state]).map((state) =>
    h("li", {}, h("a", { href: `#/links?${new URLSearchParams({ state })}` }, badge(state, `${number(links.states[state])} ${words(state)}`))))),
    Object.keys(links.states).length ? null : h("p", { class: "dim" }, "None.")].filter(Boolean);
}

function clusters(overview) {
  if (!overview.clusters.length) return [];
  return [h("h2", {}, "Clusters"), h("ul", { class: "list" }, overview.clusters.map((each) =>
    h("li", { class: `card ${each.reachable === false ? "bad" : ""}` }, h("div", { class: "row" }, h("h3", {}, each.name, each.default ? h("span", { class: "dim small" }, " the default") : null), each.reachable === null ? badge("starting", "is asked") : badge(each.reachable ? "running" : "unreachable", each.reachable ? "answers" : "does not answer")),
      h("p", { class: "small dim" }, `${each.metastore}${each.engine ? `, statements run at ${each.engine}` : ", no engine"}`))))];
}

function elsewhere(overview) {
  if (!overview.elsewhere.length) return [];
  return [h("h2", {}, "In other processes"), h("ul", {}, overview.elsewhere.map((other) =>
    h("li", {}, other.name, " ", other.serves ? h("a", { href: other.serves, rel: "noreferrer" }, other.serves) : "")))];
}

function undertakings(overview) {
  if (!overview.actions.length) return [];
  return [h("h2", {}, "Asked for here"), h("ul", { class: "list" }, overview.actions.map((each) =>
    h("li", { class: "card small" }, h("div", { class: "row" }, h("span", {}, h("strong", {}, each.action), ` ${each.target} ${each.tables.join(" ")}`), badge(each.state === "running" ? "reading" : each.state, each.state)),
      h("p", { class: "dim" }, aged(each.at)), each.problem ? h("p", { class: "problem" }, each.problem) : null, outcome(each))))];
}

function outcome({ action, result }) {
  if (!result) return null;
  if (action === "repair") return h("p", {}, result.tables.length ? `Read again: ${result.tables.join(", ")}` : `Nothing differs at event ${result.event_id}.`);
  if (!result.count) return h("p", {}, `Equal at event ${number(result.event_id)}: ${one(result.compared, "table")} compared, ${number(result.set_aside)} not compared.`);
  return h("div", {}, h("p", { class: "problem" }, `${one(result.count, "difference")} at event ${number(result.event_id)}`),
    h("ul", {}, result.differences.map((each) => h("li", {}, `${each.table}${each.partition ? `/${each.partition}` : ""}: ${each.kind} ${each.what}`))));
}
