// The view of the problems: everything that needs a person, as the process lists it, and what happened by the way.

import { h } from "./dom.js";
import { actionButtons, notAllowed } from "./actions.js";
import { aged, number, one } from "./format.js";
import { badge, tableLink, tablesLink, tries } from "./parts.js";
import { term } from "./terms.js";

const SEVERITIES = {
  stopped: ["bad", "wrong", "stands still"], wrong: ["bad", "wrong", "may differ"], aside: ["bad", "aside", "set aside"],
  late: ["warn", "late", "late"], paused: ["warn", "paused", "paused"], news: ["", "news", "is over"],
};

export function problems(overview, docs) {
  const listed = overview.problems.reduce((sum, each) => sum + each.count, 0);
  const more = overview.problem_count - listed;
  return [
    h("h1", {}, "Problems"),
    h("p", { class: "dim", role: "status" }, overview.problem_count ? `${one(overview.problem_count, "problem")}, the most harmful first.` : "Nothing needs a person."),
    overview.problems.some((each) => each.action) ? notAllowed(overview) : null,
    h("ol", { class: "list", id: "problems" }, overview.problems.map((each) => problem(each, overview, docs))),
    more > 0 ? h("p", {}, `And ${one(more, "more problem")}.`) : null,
    h("h2", {}, "Gaps of the log so far"),
    overview.gaps.length ? h("ul", { class: "list" }, overview.gaps.map((gap) => h("li", { class: "card small" },
      h("div", { class: "row" }, h("span", {}, `${gap.source}: events ${number(gap.first)} to ${number(gap.last)}${gap.target ? `, of ${gap.target} alone` : ""}, ${gap.cause}`), badge(gap.state)),
      h("p", { class: "dim" }, "found ", aged(gap.found_at))))) : h("p", { class: "dim" }, "None."),
    h("h2", {}, "Exceptions: ", term("bridge", "bridges"), ", operations in parts, tables read again"),
    overview.exceptions.length ? h("ul", { class: "list" }, overview.exceptions.map((each) => h("li", { class: "card small" },
      h("div", { class: "row" }, h("span", {}, tableLink(each.target, each.table), ` at ${each.target}`), h("span", {}, each.kind)),
      h("p", {}, each.text), h("p", { class: "dim" }, `epoch ${number(each.epoch)}, event ${number(each.event_id)}, `, aged(each.at))))) : h("p", { class: "dim" }, "None."),
  ].filter(Boolean);
}

function problem(each, overview, docs) {
  const [look, sign, label] = SEVERITIES[each.severity];
  const since = each.failing ? tries({ failing: each.failing, state: "" }) : each.since === null ? null : ["since ", aged(each.since)];
  const event = each.since_event === null ? null : `${since ? ", " : "since "}event ${number(each.since_event)}`;
  return h("li", { class: `card ${look}` },
    h("div", { class: "row" }, h("h3", {}, each.what), badge(sign, label)),
    since || event ? h("p", { class: "small" }, h("strong", {}, since, event)) : null,
    each.reason ? h("p", {}, each.reason) : null,
    h("p", { class: "small" }, h("strong", {}, "What to do: "), each.todo, each.command ? [" ", h("code", {}, each.command)] : null),
    h("p", { class: "small dim" },
      each.table ? [tableLink(each.target, each.table), " "] : null,
      each.count > 1 ? [tablesLink({ target: each.target, ...(each.kind === "quarantined" ? { state: "quarantined" } : { order: "lag" }) }, "All of them"), " "] : null,
      each.read ? ["Read: ", passage(each.read, docs)] : null),
    each.action ? actionButtons([each.action], each.target, each.pattern || null, overview.may_act) : null);
}

// A passage of the documentation: a link where the project says where it is, else the file in the repository.
export function passage(place, docs) {
  const [page, anchor] = place.split("#");
  if (!docs?.url) return h("code", {}, `docs/${place}`);
  return h("a", { href: `${docs.url.replace(/\/$/, "")}/${page.replace(/\.md$/, ".html")}${anchor ? `#${anchor}` : ""}`, rel: "noreferrer" }, place);
}
