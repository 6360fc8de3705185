// Asks for the token of the server, once for all requests that wait for it. It is kept until the tab is closed.

import { h } from "../dom.js";

let asked = null;

/** The token that a person gives. `wasWrong` says that the last one was refused. */
export function askForToken(wasWrong) {
  asked ??= new Promise((given) => open(wasWrong, given)).finally(() => {
    asked = null;
  });
  return asked;
}

function open(wasWrong, given) {
  let isGiven = false;
  const input = h("input", { type: "password", id: "token", autocomplete: "off", required: true });
  const form = h(
    "form",
    {
      on: {
        submit: (event) => {
          event.preventDefault();
          isGiven = true;
          dialog.remove();
          given(input.value.trim());
        },
      },
    },
    h("h2", {}, "This server needs a token"),
    h("p", { class: "dim" }, "It is one of http.tokens in cdc-views.yaml. This tab keeps it until you close it."),
    wasWrong && h("p", { class: "wrong", role: "alert" }, "The token was refused."),
    h("label", { for: "token" }, "Token"),
    input,
    h("button", { class: "main" }, "Open"),
  );
  // Chrome closes a dialog at the second Escape even if `cancel` was prevented.
  const close = () => isGiven || dialog.showModal();
  const dialog = h("dialog", { "aria-label": "Token", on: { cancel: (event) => event.preventDefault(), close } }, form);
  document.body.append(dialog);
  dialog.showModal();
}
