// Numbers, durations, sizes and times for people.

const WHOLE = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
export const UNKNOWN = "–";

export function number(value) {
  return value === null || value === undefined ? UNKNOWN : WHOLE.format(value);
}

export function rate(value, unit) {
  return value === null || value === undefined ? UNKNOWN : `${SHORT.format(value)} ${unit}/s`;
}

export function bytes(value) {
  if (value === null || value === undefined) return UNKNOWN;
  for (const [unit, name] of [
    [1e9, "GB"],
    [1e6, "MB"],
    [1e3, "kB"],
  ]) {
    if (value >= unit) return `${SHORT.format(value / unit)} ${name}`;
  }
  return `${Math.round(value)} bytes`;
}

export function seconds(value) {
  if (value === null || value === undefined) return UNKNOWN;
  if (value >= 86400) return `${SHORT.format(value / 86400)} days`;
  if (value >= 3600) return `${SHORT.format(value / 3600)} h`;
  if (value >= 120) return `${Math.round(value / 60)} min`;
  return value >= 10 ? `${Math.round(value)} s` : `${SHORT.format(value)} s`;
}

export function milliseconds(value) {
  if (value === null || value === undefined) return UNKNOWN;
  return value < 1000 ? `${Math.round(value)} ms` : `${SHORT.format(value / 1000)} s`;
}

/** The time of day of a time of the server, in the time zone of the browser. */
export function clock(text) {
  return text
    ? new Date(text).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" })
    : UNKNOWN;
}
