// What the last epochs did for a view or mirror, and at what cost.

import { follow, path } from "../api.js";
import { h, update } from "../dom.js";
import { clock, milliseconds, number } from "../format.js";
import { bars } from "../parts/graph.js";
import { problem } from "../parts/problem.js";
import { table } from "../parts/table.js";

const LAST = 50;

/** Show it until the signal. */
export async function history(panel, signal, view) {
  follow(
    `views/${path(view.name)}/history?last=${LAST}`,
    5,
    signal,
    (epochs) => update(panel, drawn(epochs, view)),
    (error) => update(panel, problem(error)),
  );
}

function drawn(epochs, view) {
  if (epochs.length === 0)
    return h("p", { class: "nothing" }, "No epoch that is still in the control log has changed it.");
  const isView = view.kind === "view";
  const values = epochs.map((epoch) => (isView ? epoch.milliseconds : epoch.changes));
  const withUnit = isView ? milliseconds : (value) => `${number(value)} changes`;
  const what = isView ? "Cost of each epoch" : "Changes of each epoch";
  const columns = isView
    ? ["epoch", "published", "strategy", "looked up", "found", "computed", "written", "cost"]
    : ["epoch", "published", "changes"];
  return [
    h("h2", {}, what),
    h(
      "p",
      { class: "dim" },
      `The last ${number(epochs.length)} epochs that changed it; at most ${withUnit(Math.max(...values))}.`,
    ),
    bars(
      values,
      `${what}, at most ${withUnit(Math.max(...values))}`,
      (value, place) => `${withUnit(value)}, epoch ${epochs[place].epoch}`,
      "tall",
    ),
    table(
      columns.map((name) => ({ name, type: ["published", "strategy"].includes(name) ? "string" : "int64" })),
      epochs.toReversed().map((epoch) => ({
        epoch: number(epoch.epoch),
        published: clock(epoch.published_at),
        strategy: epoch.why_full ? `${epoch.strategy} (${epoch.why_full})` : epoch.strategy,
        changes: number(epoch.changes),
        "looked up": number(epoch.keys_looked_up),
        found: number(epoch.rows_found),
        computed: number(epoch.rows_computed),
        written: number(epoch.rows_written),
        cost: milliseconds(epoch.milliseconds),
      })),
    ),
  ];
}
