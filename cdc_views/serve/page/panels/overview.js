// The overview: what is wrong, the data flow, the last hour, and all views and mirrors.

import { follow } from "../api.js";
import { h, show, update } from "../dom.js";
import { number, seconds } from "../format.js";
import { ago, bars } from "../parts/graph.js";
import { flow } from "./flow.js";
import { problem } from "../parts/problem.js";
import { tables } from "./tables.js";

/** Show it until the signal. */
export function overview(main, signal) {
  const wrong = h("div", { class: "wide" });
  const stages = h("ol", { class: "flow", "aria-label": "Data flow" });
  const hour = h("div", { class: "hour" });
  const list = tables();
  show(main, h("h1", { class: "hidden" }, "Overview"), wrong, stages, hour, list.element);
  follow(
    "status",
    2,
    signal,
    (status) => {
      update(wrong, trouble(status));
      update(stages, flow(status.stages));
      list.take(status.tables);
    },
    (error) => update(wrong, problem(error)),
  );
  follow(
    "views",
    15,
    signal,
    (found) => list.describe(found.views),
    () => {},
  );
  follow(
    "history",
    30,
    signal,
    (history) => {
      update(hour, lastHour(history));
      list.graph(history);
    },
    () => {},
  );
}

function trouble(status) {
  if (status.trouble === null)
    return h(
      "p",
      { class: "fine" },
      h("span", { class: "dot good" }),
      `All is well. The engine is ${status.activity}.`,
    );
  const [remedy, ...what] = status.trouble.split(": ");
  return h(
    "div",
    { class: "problem", role: "alert" },
    h("strong", {}, what.join(": ") || remedy),
    what.length > 0 && h("p", { class: "hint" }, h("span", {}, "What to do: "), remedy),
  );
}

function lastHour(history) {
  const count = history.epochs.length;
  const total = history.changes.reduce((sum, each) => sum + each, 0);
  const ages = history.age_seconds.filter((each) => each !== null);
  const slowest = ages.length > 0 ? `at most ${seconds(Math.max(...ages))}` : "no epoch";
  return [
    card(
      "Changes per minute",
      `${number(total)} in the last hour`,
      bars(history.changes, `Changes per minute, ${number(total)} in the last hour`, (value, place) =>
        ago(`${number(value)} changes`, place, count),
      ),
    ),
    card(
      "From commit to readable",
      `${slowest} in the last hour`,
      bars(
        history.age_seconds,
        `Seconds from commit to readable, ${slowest}`,
        (value, place) => ago(value === null ? "no epoch" : seconds(value), place, count),
        "second",
      ),
    ),
  ];
}

function card(title, caption, graph) {
  return h(
    "section",
    { class: "card" },
    h("h2", {}, title),
    h("p", { class: "dim" }, caption),
    graph,
    h("p", { class: "axis" }, h("span", {}, "60 min ago"), h("span", {}, "now")),
  );
}
