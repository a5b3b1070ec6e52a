// The views, as elements out of what the process says.

import { h, s } from "./dom.js";
import { actionButtons } from "./actions.js";

const STATES = {
  running: ["good", "●"], starting: ["busy", "◌"], bootstrapping: ["busy", "◐"], paused: ["warning", "Ⅱ"],
  stopped: ["idle", "■"], failed: ["wrong", "▲"],
  live: ["good", "●"], unknown: ["busy", "?"], reading: ["busy", "◐"], staging: ["busy", "◑"], waiting: ["warning", "…"],
  quarantined: ["wrong", "▲"], gone: ["idle", "∅"], set_aside: ["wrong", "▲"], unreachable: ["warning", "⌁"], repairing: ["busy", "◐"], repaired: ["good", "●"], held: ["warning", "Ⅱ"], done: ["good", "●"],
};
const LEGEND = { shown: "shown", passed_over: "passed over", waiting: "waits", before: "older than the ledger" };

const badge = (state, text = state) => {
  const [kind, sign] = STATES[state] ?? ["idle", "■"];
  return h("span", { class: `badge ${kind}` }, h("span", { "aria-hidden": "true" }, `${sign} `), text);
};
const number = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en"));
const one = (value, noun) => `${number(value)} ${noun}${value === 1 ? "" : "s"}`;
const seconds = (value) => value < 120 ? `${value.toFixed(1)} s` : value < 7200 ? `${Math.round(value / 60)} min` : `${(value / 3600).toFixed(1)} h`;
const size = (bytes) => {
  const unit = bytes > 0 ? Math.min(Math.floor(Math.log10(bytes) / 3), 5) : 0;
  return `${unit ? (bytes / 1000 ** unit).toFixed(1) : bytes} ${["B", "kB", "MB", "GB", "TB", "PB"][unit]}`;
};
const when = (at) => (at ? new Date(typeof at === "number" ? at * 1000 : at).toLocaleString() : "");
const tableLink = (target, name) => h("a", { href: `#/table/${encodeURIComponent(target)}/${encodeURIComponent(name)}` }, name);
const facts = (...pairs) => h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));

export function flow(overview) {
  const aside = overview.elsewhere.length ? [h("h2", {}, "In other processes"), h("ul", {}, overview.elsewhere.map((other) =>
    h("li", {}, other.name, " ", other.serves ? h("a", { href: other.serves, rel: "noreferrer" }, other.serves) : "")))] : [];
  return [
    h("h1", {}, "Flow"),
    overview.silent.length ? h("p", { class: "problem", role: "alert" }, `Does not turn: ${overview.silent.join(", ")}`) : null,
    h("div", { class: "flow" },
      h("div", { class: "upstream" }, overview.sources.map(source)),
      h("div", { class: "arrow", "aria-hidden": "true" }, "→"),
      h("div", { class: "targets" }, overview.targets.map((each) => target(each, overview)))),
    h("div", { class: "row" }, h("h2", {}, "Lag over time"),
      h("label", {}, h("span", { class: "skip" }, "Span"), h("select", { id: "span" }, h("option", { value: 1800 }, "30 minutes"), h("option", { value: 86400 }, "24 hours")))),
    h("div", { id: "lags", class: "plot", "data-keep": true, role: "img", "aria-label": "Lag of each target over time" }),
    ...channels(overview), ...linked(overview), ...clusters(overview), ...aside, ...undertakings(overview),
  ].filter(Boolean);
}

function source(each) {
  return [
    h("section", { class: `card ${each.problem ? "bad" : ""}`, "aria-label": `Source ${each.name}` },
      h("div", { class: "row" }, h("h3", {}, each.name), each.state ? badge(each.state) : badge("stopped", "captured elsewhere")),
      h("p", { class: "dim small" }, "source"),
      each.captured_here ? facts(["head", number(each.head)]) : null,
      each.problem ? h("p", { class: "problem small" }, each.problem) : null),
    h("div", { class: "down", "aria-hidden": "true" }, "↓"),
    h("section", { class: "card", "aria-label": `Journal of ${each.name}` }, h("h3", {}, "journal"),
      each.captured_here ? facts(["newest event", number(each.journal)], ["behind the source", each.head === null || each.journal === null ? "–" : one(Math.max(each.head - each.journal, 0), "event")]) : null),
  ];
}

function target(each, overview) {
  const rules = overview.rules[each.name] ?? [];
  const shown = Object.entries(each.tables).filter(([, count]) => count);
  return h("section", { class: `card ${each.problem ? "bad" : each.state === "paused" ? "warn" : ""}`, "aria-label": `Target ${each.name}` },
    h("div", { class: "row" }, h("h3", {}, each.name), badge(each.state)),
    facts(["position", number(each.position)],
      ["lag", each.position === null ? "–" : each.lag_events ? `${seconds(each.lag_seconds)}, ${one(each.lag_events, "event")}` : "none"],
      ["epoch", number(each.epoch)],
      overview.sources.length > 1 && ["source", each.source]),
    h("ul", { class: "states", "aria-label": "Tables by state" }, shown.map(([state, count]) =>
      h("li", {}, h("a", { href: `#/tables?${new URLSearchParams({ target: each.name, state })}` }, badge(state, `${number(count)} ${state}`))))),
    each.reading ? work("Reading", each.reading, `${number(each.reading.tables_done)} of ${one(each.reading.tables, "table")}`, each.reading.tables_done, each.reading.tables) : null,
    each.copying ? work("Copying", each.copying, `${size(each.copying.bytes_done)} of ${size(each.copying.bytes)}`, each.copying.bytes_done, each.copying.bytes) : null,
    each.problem ? h("p", { class: "problem small" }, each.problem) : null,
    rules.length ? h("p", { class: "small dim" }, `tables: ${rules.join(", ")}`) : null,
    each.lagging.length ? h("details", {}, h("summary", {}, "Tables farthest behind"), h("ul", {}, each.lagging.map((lag) =>
      h("li", { class: "small" }, tableLink(each.name, lag.table), ` ${one(lag.lag_events, "event")}, ${seconds(lag.lag_seconds)}`)))) : null,
    h("details", {}, h("summary", {}, "Actions"), notAllowed(overview),
      actionButtons(each.state === "paused" ? ["resume", "verify", "repair"] : ["pause", "verify", "repair"], each.name, null, overview.may_act)));
}

const notAllowed = (overview) => overview.may_act ? null :
  h("p", { class: "small dim" }, "Actions need a token: write ", h("code", {}, "token_env"), " or ", h("code", {}, "token_file"), " below ", h("code", {}, "[serve]"), ".");

function work(label, each, text, done, all) {
  const left = each.ends_at ? Math.max(each.ends_at - Date.now() / 1000, 0) : null;
  return h("div", { class: "small" }, h("div", { class: "row" }, h("span", {}, `${label}: ${text}`), left === null ? null : h("span", { class: "dim" }, `about ${seconds(left)} left`)),
    h("progress", { value: done, max: Math.max(all, 1), "aria-label": `${label} ${text}` }));
}

function channels(overview) {
  if (!overview.channels.length) return [];
  return [h("h2", {}, "Notices"), h("ul", { class: "list" }, overview.channels.map((each) =>
    h("li", { class: `card ${each.problem ? "bad" : ""}` }, h("div", { class: "row" }, h("h3", {}, each.name), badge(each.state)),
      h("p", { class: "small dim" }, `at ${each.at}, ${each.lag_events === null ? "lag not known" : `${one(each.lag_events, "event")} not sent`}`),
      each.problem ? h("p", { class: "problem small" }, each.problem) : null)))];
}

const LINK_STATES = ["live", "reading", "unreachable", "gone", "set_aside"];
const words = (state) => state.replaceAll("_", " ");

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

function undertakings(overview) {
  if (!overview.actions.length) return [];
  return [h("h2", {}, "Asked for here"), h("ul", { class: "list" }, overview.actions.map((each) =>
    h("li", { class: "card small" }, h("div", { class: "row" }, h("span", {}, h("strong", {}, each.action), ` ${each.target} ${each.tables.join(" ")}`), badge(each.state === "running" ? "reading" : each.state, each.state)),
      h("p", { class: "dim" }, when(each.at)), each.problem ? h("p", { class: "problem" }, each.problem) : null, outcome(each))))];
}

function outcome({ action, result }) {
  if (!result) return null;
  if (action === "repair") return h("p", {}, result.tables.length ? `Read again: ${result.tables.join(", ")}` : `Nothing differs at event ${result.event_id}.`);
  if (!result.count) return h("p", {}, `Equal at event ${number(result.event_id)}: ${one(result.compared, "table")} compared, ${number(result.set_aside)} not compared.`);
  return h("div", {}, h("p", { class: "problem" }, `${one(result.count, "difference")} at event ${number(result.event_id)}`),
    h("ul", {}, result.differences.map((each) => h("li", {}, `${each.table}${each.partition ? `/${each.partition}` : ""}: ${each.kind} ${each.what}`))));
}

export function problemCount(overview) {
  const others = (each) => each.quarantined.filter((row) => row.kind !== "table").length;
  return overview.targets.reduce((sum, each) => sum + each.tables.quarantined + others(each) + (each.problem ? 1 : 0), 0)
    + overview.gaps.filter((gap) => gap.state !== "repaired").length + (overview.links?.states.set_aside ?? 0) + overview.clusters.filter((each) => each.reachable === false).length;
}

export function problems(overview) {
  const failing = [...overview.sources, ...overview.targets, ...overview.channels].filter((each) => each.problem);
  const aside = overview.targets.flatMap((each) => each.quarantined.map((row) => ({ ...row, target: each.name })));
  return [
    h("h1", {}, "Problems"),
    ...(failing.length ? [h("h2", {}, "Does not get on"), h("ul", { class: "list" }, failing.map((each) =>
      h("li", { class: "card bad" }, h("div", { class: "row" }, h("h3", {}, each.name), badge(each.state)), h("p", { class: "problem" }, each.problem))))] : []),
    h("h2", {}, "Quarantine"),
    aside.length ? notAllowed(overview) : h("p", { class: "dim" }, "Nothing is set aside."),
    h("ul", { class: "list" }, aside.map((row) => h("li", { class: "card bad" },
      h("div", { class: "row" }, h("h3", {}, row.kind === "table" ? tableLink(row.target, row.table) : `${row.kind} ${row.table}`), h("span", { class: "dim small" }, `at ${row.target}, since event ${number(row.since_event)}, shows ${row.shows === null ? "nothing" : `event ${number(row.shows)}`}`)),
      h("p", {}, row.reason), h("p", { class: "small" }, h("strong", {}, "What to do: "), row.what_to_do),
      actionButtons([row.why === "held" ? "release-drops" : "release"], row.target, row.release ?? row.table, overview.may_act)))),
    ...overview.targets.filter((each) => each.tables.quarantined > each.quarantined.filter((row) => row.kind === "table").length).map((each) => h("p", {},
      h("a", { href: `#/tables?${new URLSearchParams({ target: each.name, state: "quarantined" })}` }, `All ${number(each.tables.quarantined)} at ${each.name}`))),
    ...(overview.links?.aside.length ? [h("h2", {}, "Links that are set aside"), h("ul", { class: "list" }, overview.links.aside.map((row) =>
      h("li", { class: "card bad" }, h("h3", {}, row.name), h("p", { class: "small dim" }, `connected to ${row.connected_to} via ${row.via}`), h("p", {}, row.reason)))),
      h("p", {}, h("a", { href: "#/links?state=set_aside" }, `All ${number(overview.links.states.set_aside)}`))] : []),
    h("h2", {}, "Gaps of the log"),
    overview.gaps.length ? h("ul", { class: "list" }, overview.gaps.map((gap) => h("li", { class: "card" },
      h("div", { class: "row" }, h("h3", {}, `${gap.source}: events ${number(gap.from)} to ${number(gap.to)}${gap.target ? `, at ${gap.target}` : ""}`), badge(gap.state)),
      h("p", { class: "small dim" }, `${gap.cause}, found ${when(gap.found_at)}`)))) : h("p", { class: "dim" }, "None."),
    h("h2", {}, "Exceptions"),
    h("p", { class: "dim small" }, "Bridges, operations in parts, tables read again, and changes that were taken back, as far as the ledger remembers."),
    overview.exceptions.length ? h("ul", { class: "list" }, overview.exceptions.map((each) => h("li", { class: "card small" },
      h("div", { class: "row" }, h("span", {}, tableLink(each.target, each.table), ` at ${each.target}`), badge("waiting", each.kind)),
      h("p", {}, each.text), h("p", { class: "dim" }, `epoch ${number(each.epoch)}, event ${number(each.event_id)}, ${when(each.at)}`)))) : h("p", { class: "dim" }, "None."),
  ];
}

const option = (value, label, selected) => h("option", { value, selected }, label);

// A search over what is told by name and state, with a page of what was found.
function list(title, noun, asked, states, before, found, rows, heads, row) {
  const last = Math.min(found.offset + rows.length, found.total);
  return [
    h("h1", {}, title),
    h("form", { class: "search", role: "search" }, before,
      h("label", { class: "wide" }, "Name (a part of it, or a glob such as sales.*)", h("input", { name: "q", type: "search", value: asked.q, autocomplete: "off", spellcheck: "false" })),
      h("label", {}, "State", h("select", { name: "state" }, option("", "all", !asked.state), states.map((state) => option(state, words(state), state === asked.state))))),
    h("p", { class: "dim", role: "status" }, found.total ? `${number(found.offset + 1)} to ${number(last)} of ${one(found.total, noun)}` : `No ${noun}.`),
    h("div", { class: "rows" }, h("table", {}, h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, rows.map((each) => h("tr", {}, row(each)))))),
    h("div", { class: "pager" },
      h("button", { type: "button", "data-offset": Math.max(found.offset - 50, 0), disabled: !found.offset }, "Previous"),
      h("button", { type: "button", "data-offset": last, disabled: last >= found.total }, "Next")),
  ];
}

export function links(asked, found) {
  return list("Links", "link", asked, LINK_STATES, null, found, found.links, ["link", "state", "shows event", "connected to, reason"], (row) => [
    h("td", {}, row.name), h("td", {}, badge(row.state, words(row.state))),
    h("td", { class: "num", "data-label": "shows event " }, row.event_id === null ? "nothing" : number(row.event_id)),
    h("td", { class: "full small" }, `${row.connected_to} via ${row.via}`, row.reason ? h("p", {}, row.reason) : null)]);
}

export function tables(overview, asked, found) {
  const target = h("label", {}, "Target", h("select", { name: "target" }, overview.targets.map((each) => option(each.name, each.name, each.name === asked.target))));
  const states = ["live", "reading", "staging", "waiting", "unknown", "quarantined"];
  return list("Tables", "table", asked, states, target, found, found.tables, ["table", "state", "shows event", "reason"], (row) => [
    h("td", {}, tableLink(asked.target, row.table), row.at_target ? h("span", { class: "dim small" }, ` as ${row.at_target}`) : null),
    h("td", {}, badge(row.state)), h("td", { class: "num", "data-label": "shows event " }, row.shows === null ? "nothing" : number(row.shows)), h("td", { class: "full small" }, row.reason)]);
}

export function table(overview, found) {
  const links = [...found.links].reverse();
  return [
    h("p", { class: "small" }, h("a", { href: `#/tables?${new URLSearchParams({ target: found.target })}` }, `Tables of ${found.target}`)),
    h("div", { class: "row" }, h("h1", {}, found.table), badge(found.state)),
    h("div", { class: `card ${found.state === "quarantined" ? "bad" : ""}` },
      facts(["target", found.target], found.at_target && ["name there", found.at_target],
        ["shows event", found.shows === null ? "nothing" : number(found.shows)], ["target's position", number(found.position)]),
      found.reason ? h("p", {}, found.reason) : null,
      found.what_to_do ? h("p", { class: "small" }, h("strong", {}, "What to do: "), found.what_to_do) : null,
      h("details", {}, h("summary", {}, "Actions"), notAllowed(overview),
        actionButtons(["pause", "resume", "verify", "repair", "release", ...(found.why === "held" ? ["release-drops"] : [])], found.target, found.table, overview.may_act))),
    h("h2", {}, "Its chain, newest first"),
    h("p", { class: "legend small dim" }, Object.entries(LEGEND).map(([fate, label]) => h("span", {}, s("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, s("circle", { class: `dot ${fate}`, cx: 8, cy: 8, r: 6 })), ` ${label}`))),
    links.length ? h("ol", { class: "chain", reversed: true }, links.map((link, place) => item(link, links[place - 1], links[place + 1])))
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
    h("p", { class: "small dim" }, when(link.event_time)),
    link.fate === "shown" ? h("p", { class: "small" }, `${changes}${link.files ? `: ${one(link.files, "file")}, ${size(link.bytes)}` : ""}${link.epoch === null ? "" : `; epoch ${number(link.epoch)}, ${when(link.published_at)}`}`) : null,
    link.why ? h("p", { class: "small" }, link.why) : null));
}
