// The view of the process itself: versions, addresses, documentation; and the line at the foot of every view.

import { h } from "./dom.js";
import { aged } from "./format.js";
import { facts, grid } from "./parts.js";
import { passage } from "./problems.js";

const PASSAGES = {
  "what the states mean": "operations.md#states-of-a-table",
  "runbook: when something fails": "operations.md#when-something-fails",
  "metrics and alerts": "operations.md#a-dashboard-and-alerts",
  "words": "glossary.md",
};

// What the process serves beside the page.
const served = (name, file) => h("a", { href: name, "data-save": file }, `/${name}`);

export function foot(known) {
  return [`calque ${known.versions.version}, process ${known.pid} on ${known.host}. `, h("a", { href: "#/about" }, "About"), ", ",
    served("metrics", "metrics.txt"), ", ", served("status", "status.json"), ", runbook: ", passage(PASSAGES["runbook: when something fails"], known.docs)];
}

export function about(known) {
  const { url, folder } = known.docs;
  return [
    h("h1", {}, "About this process"),
    h("div", { class: "card" }, facts(
      ["calque", known.versions.version || "not installed"], ["Python", known.versions.python], ["PySpark", known.versions.pyspark || "–"], ["deltalake", known.versions.deltalake || "–"],
      ["host", known.host], ["process", String(known.pid)], ["started", aged(known.began)],
      ["configuration", h("code", {}, known.configuration)], ["state folder", h("code", {}, known.state)],
      ["reading", known.reading === "open" ? "open on this host; actions need the token" : "with the token, where one is configured"])),
    h("h2", {}, "Metastores"),
    grid(["name", "metastore", "warehouse"], [
      ...known.sources.map((each) => [[`${each.name}, source`], [h("code", {}, each.metastore)], [""]]),
      ...known.targets.map((each) => [[`${each.name}, target of ${each.source}`], [h("code", {}, each.metastore)], [h("code", {}, each.warehouse), { class: "full" }]])]),
    h("h2", {}, "More"),
    h("ul", {},
      h("li", {}, served("metrics", "metrics.txt"), " for Prometheus, ", served("status", "status.json"), " as ", h("code", {}, "calque status --json"), " has it"),
      h("li", {}, "Documentation: ", url ? h("a", { href: url, rel: "noreferrer" }, url) : h("code", {}, folder ?? "the folder docs of the repository")),
      Object.entries(PASSAGES).map(([label, place]) => h("li", {}, `${label}: `, passage(place, known.docs)))),
  ];
}
