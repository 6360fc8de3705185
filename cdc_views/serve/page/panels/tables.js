// All views and mirrors: how fresh, how large, at what cost, and the last hour of each.

import { h, show, update } from "../dom.js";
import { milliseconds, number, seconds } from "../format.js";
import { ago, bars } from "../parts/graph.js";
import { problem } from "../parts/problem.js";
import { shapeOf } from "../parts/shape.js";

const GRAPH = 6; // the column that is drawn only with a new history

/** The lists, which follow what they are given. */
export function tables() {
  let rows = [];
  let described = new Map();
  let history = null;
  const drawn = new WeakMap(); // the history that the graph in a cell is of
  const filter = h("input", {
    type: "search",
    placeholder: "Filter  ( / )",
    "aria-label": "Filter by name",
    "data-key": "/",
    on: { input: draw },
  });
  const views = h("div", {});
  const mirrors = h("div", {});
  const element = h(
    "div",
    { class: "lists" },
    h("section", { class: "card wide" }, h("div", { class: "head" }, h("h2", {}, "Views"), filter), views),
    h("section", { class: "card wide" }, h("h2", {}, "Mirrors"), mirrors),
  );

  function draw() {
    const wanted = rows.filter((row) => row.table.toLowerCase().includes(filter.value.trim().toLowerCase()));
    const isMirror = (row) =>
      described.get(row.table)?.kind === "mirror" || (!described.has(row.table) && row.table.includes("."));
    update(
      views,
      list(
        wanted.filter((row) => !isMirror(row)),
        true,
      ),
    );
    update(mirrors, list(wanted.filter(isMirror), false));
    drawGraphs(views, true);
    drawGraphs(mirrors, false);
  }

  /** Draw the graphs that are not those of the history yet. */
  function drawGraphs(place, areViews) {
    for (const cell of place.querySelectorAll("[data-own]")) {
      if (drawn.get(cell) === history) continue;
      show(cell, graphOf(cell.dataset.own, areViews));
      drawn.set(cell, history);
    }
  }

  function list(found, areViews) {
    if (found.length === 0) return h("p", { class: "nothing" }, areViews ? "No view." : "No mirror.");
    const heads = [
      "Name",
      "Status",
      "Freshness",
      ...(areViews ? ["Strategy"] : ["Behind"]),
      "Rows",
      ...(areViews ? ["Last cost", "Cost, last hour"] : ["Last epoch", "Changes, last hour"]),
    ];
    const numeric = new Set(["Freshness", "Behind", "Rows", "Last cost", "Last epoch"]);
    return h(
      "table",
      { class: "list" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          heads.map((head) => h("th", { class: numeric.has(head) ? "number" : null }, head)),
        ),
      ),
      h(
        "tbody",
        {},
        found.map((row) => line(row, areViews, heads)),
      ),
    );
  }

  function line(row, areViews, heads) {
    const facts = described.get(row.table);
    const cells = [
      [
        h("a", { href: `#/view/${encodeURIComponent(row.table)}` }, row.table),
        facts && shapeOf(facts),
      ],
      status(row),
      facts !== undefined && facts.age_s === null && row.status === "building" ? "–" : seconds(row.freshness_s),
      areViews ? h("span", { class: "strategy" }, row.strategy ?? "–") : number(row.behind),
      number(row.rows),
      areViews ? milliseconds(row.last_ms) : number(row.last_epoch),
      null,
    ];
    const kinds = [null, null, "number", areViews ? null : "number", "number", "number", "small"];
    const found = h(
      "tr",
      { "data-id": row.table },
      cells.map((cell, i) =>
        h("td", { class: kinds[i], "data-label": heads[i], "data-own": i === GRAPH ? row.table : null }, cell),
      ),
    );
    if (!facts?.problem) return found;
    const why = h("td", { colspan: cells.length }, problem(facts.problem));
    return [found, h("tr", { class: "why", "data-id": `why ${row.table}` }, why)];
  }

  function graphOf(name, areViews) {
    if (!history || !Object.hasOwn(history.tables, name)) return h("span", { class: "dim" }, "no change");
    const of = history.tables[name];
    const values = areViews ? of.milliseconds : of.changes;
    const withUnit = (value) => (areViews ? milliseconds(value) : `${number(value)} changes`);
    return bars(
      values,
      `${areViews ? "Cost" : "Changes"} of ${name} in the last hour, at most ${withUnit(Math.max(...values))} a minute`,
      (value, place) => ago(withUnit(value), place, values.length),
    );
  }

  return {
    element,
    take(found) {
      rows = found;
      draw();
    },
    describe(found) {
      described = new Map(found.map((each) => [each.name, each]));
      draw();
    },
    graph(found) {
      history = found;
      draw();
    },
  };
}

/** The status of a table as a coloured word. */
export function status({ status: word, parked, discarded }) {
  const kind = word === "live" ? "good" : word === "building" || word === "parked" ? "warn" : "bad";
  const more = parked ? `, ${number(parked)} parked` : discarded ? `, ${number(discarded)} discarded` : "";
  return h("span", { class: `pill ${kind}` }, word + more);
}
