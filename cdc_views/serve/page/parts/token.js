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
  const input = h("input", { type: "password", id: "token", autocomplete: "off", required: true });
  const form = h(
    "form",
    {
      on: {
        submit: (event) => {
          event.preventDefault();
          dialog.close();
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
  const dialog = h("dialog", { "aria-label": "Token", on: { cancel: (event) => event.preventDefault() } }, form);
  document.body.append(dialog);
  dialog.showModal();
}
