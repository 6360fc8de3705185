// The published epochs.

import { follow } from "../api.js";
import { h, show, update } from "../dom.js";
import { clock, number } from "../format.js";
import { problem } from "../parts/problem.js";
import { table } from "../parts/table.js";

const COLUMNS = ["epoch", "kind", "position", "committed", "readable", "changes", "parked", "views"];
const TEXTS = new Set(["kind", "position", "committed", "readable"]);

/** Show them until the signal. */
export function epochs(main, signal) {
  const place = h("div", {});
  show(
    main,
    h("h1", {}, "Epochs"),
    h("p", { class: "dim" }, "The last 100 with changes, newest first. Each is a consistent state of all tables."),
    h("section", { class: "card wide" }, place),
  );
  follow(
    "epochs?last=100",
    3,
    signal,
    (found) =>
      update(
        place,
        table(
          COLUMNS.map((name) => ({ name, type: TEXTS.has(name) ? "string" : "int64" })),
          found.toReversed().map((epoch) => ({
            epoch: number(epoch.epoch),
            kind: epoch.kind,
            position: epoch.position,
            committed: clock(epoch.committed_at),
            readable: clock(epoch.published_at),
            changes: number(epoch.changes),
            parked: number(epoch.parked),
            views: number(Object.keys(epoch.view_work).length),
          })),
        ),
      ),
    (error) => update(place, problem(error)),
  );
}
