// Which panel is shown, and the header.

import { follow, forgetToken, hasToken } from "./api.js";
import { h, show, update } from "./dom.js";
import { number, seconds } from "./format.js";
import { epochs } from "./panels/epochs.js";
import { overview } from "./panels/overview.js";
import { problem } from "./parts/problem.js";
import { sql } from "./panels/sql.js";
import { view } from "./panels/view.js";

const THEME = "cdc-views theme";
const PANELS = { "": overview, sql, epochs, view };
const main = document.getElementById("main");
const forget = document.getElementById("forget");
let shown = new AbortController();

/** Show the panel of the address: #/view/NAME/TAB and the like. */
async function route() {
  shown.abort();
  shown = new AbortController();
  const { signal } = shown;
  const [panel, ...parts] = location.hash.replace(/^#\/?/, "").split("/").map(decoded);
  for (const link of document.querySelectorAll("header nav a")) {
    const isHere = link.hash.replace(/^#\/?/, "") === (panel === "view" ? "" : panel);
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  try {
    document.title = parts[0] ? `${parts[0]} · cdc_views` : "cdc_views";
    await (Object.hasOwn(PANELS, panel) ? PANELS[panel] : overview)(main, signal, ...parts);
  } catch (error) {
    if (!signal.aborted) show(main, problem(error));
  }
}

/** A part of the address; as it is, if somebody has typed a "%" that is no code. */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The epoch in the header, which is always there. */
function header() {
  const now = document.getElementById("now");
  forget.hidden = !hasToken();
  follow(
    "epoch",
    2,
    new AbortController().signal,
    (epoch) => {
      update(
        now,
        h("span", { class: "dot good" }),
        `epoch ${number(epoch.epoch)}`,
        h("span", { class: "dim" }, `${seconds(epoch.age_s)} old`),
      );
      forget.hidden = !hasToken();
    },
    (error) => {
      update(now, h("span", { class: "dot bad" }), error.error ?? "no answer");
      forget.hidden = !hasToken();
    },
  );
}

function theme(chosen) {
  if (chosen) document.documentElement.dataset.theme = chosen;
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

theme(localStorage.getItem(THEME));
document.getElementById("theme").addEventListener("click", () => {
  theme(isDark() ? "light" : "dark");
  localStorage.setItem(THEME, document.documentElement.dataset.theme);
});
forget.addEventListener("click", () => {
  forgetToken();
  location.reload();
});
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, textarea");
  const wanted =
    isTyping || event.ctrlKey || event.metaKey || event.altKey
      ? null
      : document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (wanted) {
    event.preventDefault();
    wanted.focus();
  }
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // its address would be read as the name of a panel
  main.focus();
});
addEventListener("hashchange", () => {
  route();
  main.focus({ preventScroll: true });
  scrollTo(0, 0);
});
header();
route();
