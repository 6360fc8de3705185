// Requests to the server: the token, problems, and what is asked again and again.

import { askForToken } from "./parts/token.js";

const KEY = "cdc-views token";

/** An error of the server, as problem details (RFC 9457), or of the way to it. */
export class Problem extends Error {
  constructor({ error, detail, hint, status }) {
    super(detail);
    Object.assign(this, { error, detail, hint, status });
  }
}

/** The answer to a GET request: `parameters` may have lists; null and "" are omitted. Throws Problem. */
export async function get(path, parameters = {}, signal = undefined) {
  return (await ask(url(path, parameters), { signal })).body;
}

/** The answer to a query, with the headers. Throws Problem. */
export async function query(sql, signal) {
  return ask("query", { method: "POST", body: sql, headers: { "Content-Type": "text/plain" }, signal });
}

/** A path of parts, each of which may have any character. */
export function path(...parts) {
  return parts.map(encodeURIComponent).join("/");
}

/** The parameter for the key of a row, of its values as texts. In a path, a browser would resolve a value ".." away. */
export function keyOf(values) {
  return values.length === 1 ? values[0] : JSON.stringify(values);
}

/** Ask again and again until the signal; not while the page is hidden. `take` gets each answer, `fail` each problem. */
export async function follow(address, seconds, signal, take, fail) {
  while (!signal.aborted) {
    if (!document.hidden) {
      try {
        take(await get(address, {}, signal));
      } catch (error) {
        if (signal.aborted) return;
        fail(error);
      }
    }
    await pause(seconds * 1000, signal);
  }
}

export function hasToken() {
  return sessionStorage.getItem(KEY) !== null;
}

export function forgetToken() {
  sessionStorage.removeItem(KEY);
}

async function ask(address, options) {
  for (let refused = false; ; refused = true) {
    const token = sessionStorage.getItem(KEY);
    const authorization = token === null ? {} : { Authorization: `Bearer ${bytesOf(token)}` };
    const response = await answered(address, { ...options, headers: { ...options.headers, ...authorization } });
    if (response.status === 401) {
      // Another request may have got a token meanwhile: that one is tried before anybody is asked again.
      if (sessionStorage.getItem(KEY) === token) sessionStorage.removeItem(KEY);
      if (!hasToken()) sessionStorage.setItem(KEY, await askForToken(refused || token !== null));
      continue;
    }
    const body = parsed(await response.text());
    if (!response.ok) throw new Problem(body);
    return { body, headers: response.headers };
  }
}

/** A text in UTF-8, a character for each byte, as fetch wants it: it throws for characters beyond Latin-1. */
function bytesOf(text) {
  return String.fromCharCode(...new TextEncoder().encode(text));
}

async function answered(address, options) {
  try {
    return await fetch(address, options);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Problem({ error: "NoAnswer", detail: "the server does not answer", hint: 'run "cdc-views serve"' });
  }
}

function url(address, parameters) {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const each of [value].flat()) if (each !== null && each !== undefined && each !== "") given.append(name, each);
  }
  const text = given.toString();
  return text ? `${address}?${text}` : address;
}

/**
 * JSON whose whole numbers keep all of their digits: those that JavaScript would round are texts. A browser whose
 * JSON.parse does not give the source of a number has only the rounded one, which is marked with "≈".
 */
function parsed(text) {
  return JSON.parse(text, (_name, value, context) => {
    const isRounded = typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);
    return isRounded ? (context?.source ?? `≈${value}`) : value;
  });
}

function pause(milliseconds, signal) {
  return new Promise((done) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      done();
    };
    const timer = setTimeout(end, milliseconds);
    signal.addEventListener("abort", end);
  });
}
