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

/**
 * Make the content of an element equal to `children`, and keep the elements that it has already. So the focus and the
 * place that was scrolled to stay, and a screen reader reads an alert again only if its text is another one.
 *
 * Elements with the same `data-id` are one; any other is the one at its place, if the tag is the same. An element with
 * `data-whole` is replaced if it differs. The content of one with `data-own` is left alone.
 */
export function update(element, ...children) {
  const wanted = nodes(children);
  const ids = new Set(wanted.map(idOf));
  const known = new Map();
  for (const child of [...element.childNodes]) {
    if (idOf(child) && !ids.has(idOf(child))) child.remove();
    else known.set(idOf(child), child);
  }
  let place = element.firstChild;
  for (const node of wanted) {
    const kept = idOf(node) ? known.get(idOf(node)) : place;
    if (kept && isSame(kept, node)) {
      if (kept !== place) element.insertBefore(kept, place);
      become(kept, node);
      place = kept.nextSibling;
    } else {
      element.insertBefore(node, place);
    }
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

function idOf(node) {
  return node.dataset?.id;
}

/** Whether an element can become another one; that one has no listeners. */
function isSame(kept, node) {
  if (kept.nodeName !== node.nodeName || idOf(kept) !== idOf(node)) return false;
  return !("whole" in (node.dataset ?? {})) || kept.isEqualNode(node);
}

function become(kept, node) {
  if (kept.isEqualNode(node)) return;
  if (kept.nodeType === Node.TEXT_NODE) {
    kept.data = node.data;
    return;
  }
  for (const { name } of [...kept.attributes]) if (!node.hasAttribute(name)) kept.removeAttribute(name);
  for (const { name, value } of node.attributes) if (kept.getAttribute(name) !== value) kept.setAttribute(name, value);
  if (!("own" in kept.dataset)) update(kept, ...node.childNodes);
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
