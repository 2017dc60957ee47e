// A state as a link: the card that it began as, and the keys that differ from it.

const plain = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const equal = (a, b) => JSON.stringify(a) === JSON.stringify(b);

// Keys that must be set or taken out to make `values` of `base`, by their dotted paths. Keys that hold a dot themselves (those of sweeps
// and of changes) have no path of their own: the table that holds them is set as a whole.
export const difference = (base, values) => {
  const set = {}, unset = [];
  const walk = (before, after, path) => {
    const join = (key) => (path ? `${path}.${key}` : key);
    for (const key of Object.keys(after)) {
      const [old, now] = [before[key], after[key]];
      if (equal(old, now)) continue;
      const tables = (list) => Array.isArray(list) && list.length > 0 && list.every(plain);
      const dotted = (table) => Object.keys(table).some((name) => name.includes("."));
      if (plain(old) && plain(now) && !dotted(old) && !dotted(now)) walk(old, now, join(key));
      else if (tables(old) && tables(now) && old.length === now.length) walk({ ...old }, { ...now }, join(key));
      else set[join(key)] = now;
    }
    for (const key of Object.keys(before)) if (!(key in after)) unset.push(join(key));
  };
  walk(base, values, "");
  return { set, unset };
};

export const encode = ({ card, set, unset, pins }) => {
  const part = (text) => encodeURIComponent(text).replaceAll("%2F", "/").replaceAll("%2C", ",").replaceAll("%5B", "[").replaceAll("%5D", "]");
  const parts = [`card=${part(card)}`];
  for (const [key, value] of Object.entries(set)) parts.push(`${part(key)}=${part(JSON.stringify(value))}`);
  for (const key of unset) parts.push(`-${part(key)}`);
  for (const pin of pins) parts.push(`pin=${part(JSON.stringify(pin))}`);
  return `#${parts.join("&")}`;
};

// What a link says; null for one that says nothing that can be understood.
export const decode = (hash) => {
  if (!hash.startsWith("#card=")) return null;
  const state = { card: "", set: {}, unset: [], pins: [] };
  try {
    for (const part of hash.slice(1).split("&")) {
      const [key, value] = part.split(/=(.*)/s).map(decodeURIComponent);
      if (key === "card") state.card = value;
      else if (key === "pin") state.pins.push(JSON.parse(value));
      else if (key.startsWith("-")) state.unset.push(key.slice(1));
      else state.set[key] = JSON.parse(value);
    }
  } catch { return null; }
  return state;
};
