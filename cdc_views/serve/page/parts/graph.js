// Small graphs of bars. What they show is also in their label, for those who do not see them.

import { svg } from "../dom.js";

const HEIGHT = 100;
const GAP = 0.25;

/**
 * Bars from left to right, the largest as high as the graph. `label` says what they are, `titleOf(value, place)` is the
 * title of each.
 */
export function bars(values, label, titleOf, kind = "") {
  const largest = Math.max(...values.map((value) => value ?? 0), 0);
  const drawn = values.map((value, place) => {
    const height = largest > 0 && value ? Math.max(3, (value / largest) * HEIGHT) : 1;
    const attributes = {
      x: place + GAP / 2,
      y: HEIGHT - height,
      width: 1 - GAP,
      height,
      class: value ? "bar" : "none",
    };
    return svg("rect", attributes, svg("title", {}, titleOf(value, place)));
  });
  const box = `0 0 ${Math.max(1, values.length)} ${HEIGHT}`;
  const attributes = {
    viewBox: box,
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": label,
    class: `graph ${kind}`,
  };
  return svg("svg", attributes, drawn);
}

/** What a bar of the last minutes is: "12 changes, 5 min ago". */
export function ago(text, place, count) {
  const minutes = count - 1 - place;
  return minutes === 0 ? `${text}, this minute` : `${text}, ${minutes} min ago`;
}
