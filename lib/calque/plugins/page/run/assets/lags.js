// Lag over time, by uPlot.

import { get } from "./api.js";

const seen = new Map();
let newest = 0;
let plot = null;
let key = "";

const HUES = [210, 28, 140, 330, 265, 60, 185, 0, 95, 300];

async function update() {
  const answer = await get("lags", { since: newest });
  for (const [target, [at, seconds]] of Object.entries(answer.targets)) {
    if (!at?.length) continue;
    const series = seen.get(target) ?? [[], []];
    series[0].push(...at);
    series[1].push(...seconds);
    const old = series[0].findIndex((time) => time > answer.now - 86400);
    if (old > 0) series.forEach((column) => column.splice(0, old));
    seen.set(target, series);
    newest = Math.max(newest, at[at.length - 1]);
  }
}

export async function drawLags(box, targets) {
  if (!box) return;
  await update();
  const names = targets.map((target) => target.name).filter((name) => seen.get(name)?.[0].length);
  if (!names.length) return;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const span = Number(document.getElementById("span")?.value ?? 1800);
  const from = Date.now() / 1000 - span;
  const parts = names.map((name) => {
    const [at, seconds] = seen.get(name);
    const first = Math.max(at.findIndex((time) => time >= from), 0);
    return [at.slice(first), seconds.slice(first)];
  });
  const data = uPlot.join(parts, parts.map((columns) => columns.map(() => 1)));
  const wanted = JSON.stringify([names, dark, box.clientWidth]);
  if (plot && key === wanted && box.contains(plot.root)) {
    plot.setData(data);
    return;
  }
  plot?.destroy();
  key = wanted;
  const style = getComputedStyle(document.documentElement);
  const axis = { stroke: style.getPropertyValue("--dim"), grid: { stroke: style.getPropertyValue("--line"), width: 1 }, ticks: { show: false } };
  plot = new uPlot({
    width: box.clientWidth, height: 220,
    scales: { y: { range: (_, low, high) => [0, Math.max(high ?? 0, 1) * 1.1] } },
    axes: [axis, { ...axis, size: 56, values: (_, values) => values.map((value) => `${value} s`) }],
    series: [{ label: "time", value: (_, at) => (at ? new Date(at * 1000).toLocaleTimeString() : "–") }, ...names.map((name, place) => ({
      label: name, width: 2, spanGaps: true, points: { show: false },
      dash: place >= HUES.length ? [6, 4] : undefined,
      stroke: `hsl(${HUES[place % HUES.length]} 70% ${dark ? 68 : 38}%)`,
      value: (_, value) => (value === null || value === undefined ? "–" : `${value.toFixed(1)} s`),
    }))],
  }, data, box);
}
