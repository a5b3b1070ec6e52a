// Lag over time: a plot by uPlot, and the same as text.

import { get } from "./api.js";
import { seconds } from "./format.js";

const seen = new Map();
let newest = 0;
let plot = null;
let key = "";

const HUES = [210, 28, 140, 330, 265, 60, 185, 0, 95, 300];
const SPAN = 1800;
const span = () => Number(document.getElementById("span")?.value ?? SPAN);
const clock = (at) => new Date(at * 1000).toISOString().slice(11, 19);

export async function updateLags() {
  const answer = await get("lags", { since: newest });
  for (const [target, [at, lags]] of Object.entries(answer.targets)) {
    if (!at?.length) continue;
    const series = seen.get(target) ?? [[], []];
    series[0].push(...at);
    series[1].push(...lags);
    const old = series[0].findIndex((time) => time > answer.now - 86400);
    if (old > 0) series.forEach((column) => column.splice(0, old));
    seen.set(target, series);
    newest = Math.max(newest, at[at.length - 1]);
  }
}

// The times and lags of a target within the span that is shown.
function shown(name) {
  const [at, lags] = seen.get(name) ?? [[], []];
  if (!at.length) return [[], []];
  const from = at[at.length - 1] - span();
  const first = Math.max(at.findIndex((time) => time >= from), 0);
  return [at.slice(first), lags.slice(first)];
}

// What the plot says: for each target its lag now, the one that 95 % of the samples do not exceed, and the greatest.
export function lagSummary(targets) {
  const rows = targets.map(({ name }) => {
    const lags = shown(name)[1].filter((lag) => lag !== null);
    if (!lags.length) return { name, now: "not known", usual: "–", most: "–" };
    const sorted = [...lags].sort((one, other) => one - other);
    return { name, now: seconds(lags[lags.length - 1]), usual: seconds(sorted[Math.ceil(sorted.length * 0.95) - 1]), most: seconds(sorted[sorted.length - 1]) };
  });
  const said = rows.map((row) => `${row.name} ${row.now}, at most ${row.most}`).join("; ");
  return { rows, sentence: `Lag of each target over ${span() === SPAN ? "30 minutes" : "24 hours"}: ${said || "no target"}.` };
}

export function drawLags(box, targets) {
  if (!box) return;
  const names = targets.map((target) => target.name).filter((name) => seen.get(name)?.[0].length);
  if (!names.length) return;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const parts = names.map(shown);
  const data = uPlot.join(parts, parts.map((columns) => columns.map(() => 1)));
  const wanted = JSON.stringify([names, dark, box.clientWidth]);
  if (plot && key === wanted && box.contains(plot.root)) {
    plot.setData(data);
    tellNewest(plot);
    return;
  }
  plot?.destroy();
  key = wanted;
  const style = getComputedStyle(document.documentElement);
  const axis = { stroke: style.getPropertyValue("--dim"), grid: { stroke: style.getPropertyValue("--line"), width: 1 }, ticks: { show: false } };
  plot = new uPlot({
    width: box.clientWidth, height: 220,
    tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
    scales: { y: { range: (_, low, high) => [0, Math.max(high ?? 0, 1) * 1.1] } },
    axes: [{ ...axis, values: (_, times) => times.map(clock), space: 70 }, { ...axis, size: 56, values: (_, values) => values.map((value) => `${value} s`) }],
    hooks: { setCursor: [(drawn) => drawn.cursor.idx === null && tellNewest(drawn)] },
    series: [{ label: "UTC", value: (_, at) => (at ? clock(at) : "–") }, ...names.map((name, place) => ({
      label: name, width: 2, spanGaps: true, points: { show: false },
      dash: place >= HUES.length ? [6, 4] : undefined,
      stroke: `hsl(${HUES[place % HUES.length]} 70% ${dark ? 68 : 38}%)`,
      value: (_, value) => (value === null || value === undefined ? "–" : seconds(value)),
    }))],
  }, data, box);
  tellNewest(plot);
}

// Without a pointer over the plot, its legend has the newest values.
function tellNewest(drawn) {
  if (drawn.cursor.idx === null || drawn.cursor.idx === undefined) drawn.setLegend({ idx: drawn.data[0].length - 1 }, false);
}
