// Numbers, sizes and times as text. Every time is UTC, with its age by the clock of the process.

import { h } from "./dom.js";

let now = Date.now() / 1000;

export const setNow = (at) => { now = at; };

export const number = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en"));
export const one = (value, noun) => `${number(value)} ${noun}${value === 1 ? "" : "s"}`;
export const words = (state) => state.replaceAll("_", " ");

export function seconds(value) {
  if (value < 10) return `${value.toFixed(1)} s`;
  if (value < 120) return `${Math.round(value)} s`;
  if (value < 7200) return `${Math.round(value / 60)} min`;
  return value < 172800 ? `${(value / 3600).toFixed(1)} h` : `${Math.round(value / 86400)} days`;
}

export function size(bytes) {
  const unit = bytes > 0 ? Math.min(Math.floor(Math.log10(bytes) / 3), 5) : 0;
  return `${unit ? (bytes / 1000 ** unit).toFixed(1) : bytes} ${["B", "kB", "MB", "GB", "TB", "PB"][unit]}`;
}

// Texts of the ledger are ISO 8601 in UTC, and some do not say so.
const asSeconds = (at) => (typeof at === "number" ? at : Date.parse(/(Z|[+-]\d\d:?\d\d)$/.test(at) ? at : `${at}Z`) / 1000);
const iso = (at) => new Date(at * 1000).toISOString();

// The time of day, and the day where it is not today's.
export function clock(at) {
  const text = iso(at);
  return text.slice(0, 10) === iso(now).slice(0, 10) ? text.slice(11, 19) : text.slice(0, 19).replace("T", " ");
}

export function time(at, zone = " UTC") {
  if (at === null || at === undefined || at === "") return "–";
  const value = asSeconds(at);
  return h("time", { datetime: iso(value), title: iso(value) }, `${clock(value)}${zone}`);
}

export const age = (at) => {
  const passed = now - asSeconds(at);
  return passed < 0 ? `in ${seconds(-passed)}` : seconds(passed);
};

export const aged = (at) => (at === null || at === undefined || at === "" ? "–" : [time(at), ` (${age(at)})`]);
