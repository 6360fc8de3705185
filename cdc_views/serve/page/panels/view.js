// A view or mirror: what it is, and its tabs.

import { follow, get, path } from "../api.js";
import { h, show, update } from "../dom.js";
import { number, seconds } from "../format.js";
import { cache } from "./cache.js";
import { definition } from "./definition.js";
import { history } from "./history.js";
import { problem } from "../parts/problem.js";
import { shapeOf } from "../parts/shape.js";
import { rows } from "./rows.js";
import { search } from "./search.js";
import { status } from "./tables.js";
import { timeline } from "./timeline.js";

const OWN = {
  search_index: ["search", "Search", search],
  timeline: ["timeline", "Timeline", timeline],
  cache: ["cache", "Look up", cache],
};

/** Show the view with a name, at one of its tabs, until the signal. */
export async function view(main, signal, name, tab) {
  const found = await get(`views/${path(name)}`, {}, signal);
  const tabs = [
    ...(OWN[found.shape] ? [OWN[found.shape]] : []),
    ["rows", "Rows", rows],
    ["definition", found.kind === "view" ? "Definition" : "Columns", definition],
    ["history", "History", history],
  ];
  const chosen = tabs.find(([key]) => key === tab) ?? tabs[0];
  const panel = h("section", { class: "card wide panel", role: "tabpanel", "aria-label": chosen[1], id: "panel" });
  const links = tabs.map(([key, label]) =>
    h(
      "a",
      {
        href: `#/view/${encodeURIComponent(name)}/${key}`,
        role: "tab",
        id: `tab-${key}`,
        "aria-selected": key === chosen[0] ? "true" : "false",
        tabindex: key === chosen[0] ? "0" : "-1",
        "aria-controls": "panel",
      },
      label,
    ),
  );
  const now = h("div", { class: "now-of" });
  const tell = (view) =>
    update(
      now,
      h(
        "dl",
        { class: "facts" },
        facts(view).map(([term, value]) => h("div", {}, h("dt", {}, term), h("dd", {}, value))),
      ),
      view.problem && problem(view.problem),
    );
  tell(found);
  follow(`views/${path(name)}`, 5, signal, tell, () => {});
  show(
    main,
    h("p", { class: "crumbs" }, h("a", { href: "#/" }, "Overview"), " / ", found.kind === "view" ? "view" : "mirror"),
    h(
      "div",
      { class: "title" },
      h("h1", {}, name),
      status(found),
      shapeOf(found),
    ),
    now,
    h(
      "div",
      { class: "tabs", role: "tablist", "aria-label": "What to show", on: { keydown: (event) => move(event, links) } },
      links,
    ),
    panel,
  );
  try {
    await chosen[2](panel, signal, found);
  } catch (error) {
    if (!signal.aborted) show(panel, problem(error));
  }
}

function facts(found) {
  return [
    ["rows", number(found.rows)],
    ["freshness", seconds(found.age_s)],
    ["key", found.key === null ? "none" : found.key.join(", ") || "at most one row"],
    ["columns", number(found.columns.length)],
  ];
}

/** The arrow keys go from one tab to the next. */
function move(event, links) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (step === undefined) return;
  const next = links[(links.indexOf(document.activeElement) + step + links.length) % links.length];
  next.focus();
  event.preventDefault();
}
