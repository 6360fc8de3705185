// Makes elements. Children become text, never markup, so a value of a row cannot be anything else.

const NOT_ATTRIBUTES = new Set(["on", "class"]);

/** An element. `attributes` may have `class`, `on` (listeners by event) and any other; null and false are omitted. */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/** Replace everything in an element. */
export function show(element, ...children) {
  element.replaceChildren(...nodes(children));
}

function filled(element, attributes, children) {
  if (attributes.class) element.setAttribute("class", attributes.class);
  for (const [event, listener] of Object.entries(attributes.on ?? {})) element.addEventListener(event, listener);
  for (const [name, value] of Object.entries(attributes)) {
    if (NOT_ATTRIBUTES.has(name) || value === null || value === undefined || value === false) continue;
    if (name === "href" && !String(value).startsWith("#")) throw new Error("links lead to this page only");
    element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...nodes(children));
  return element;
}

function nodes(children) {
  const found = children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
  return found.map((child) => (child instanceof Node ? child : document.createTextNode(String(child))));
}
