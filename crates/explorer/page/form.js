// The description as a form, made from the schema. It knows types and limits, no key by its name but those of the sections.

const SECTIONS = ["model", "data", "training", "start", "record", "run", "sweep", "scan", "measure", "claim", "figure", "quick", "full"];
const OPEN = new Set(["model", "data", "training", "start", "record"]);
const TAGS = ["family", "kind", "law", "engine"];

const make = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== undefined && value !== null) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
};
export { make };

const get = (value, path) => path.split(".").reduce((at, part) => at?.[part], value);
const put = (data, path, value) => {
  const keys = path.split("."), last = keys.pop();
  const owner = keys.reduce((at, part) => at?.[part], data);
  if (owner) owner[last] = value;
};
const text = (value) => (typeof value === "number" ? String(value) : JSON.stringify(value));

// Three digits are what a slider can mean.
const rounded = (value) => Number(value.toPrecision(3));

// Ends and form of the slider of a number, from the value that it has on the card.
const scale = (value, node, about) => {
  const whole = node.type === "integer" || node.type?.includes?.("integer");
  const most = node.maximum ?? Infinity, least = node.minimum ?? -Infinity;
  if (whole) {
    if (value <= 20) return { low: Math.max(least, 1), high: Math.min(most, Math.max(10, 3 * value)), log: false, whole };
    return { low: Math.max(least, 1, 10 ** Math.floor(Math.log10(value) - 1)), high: Math.min(most, value * 20), log: true, whole };
  }
  if (value > 0 && value <= 1 && /between 0 and 1|in \(0, 1\)|\[0, 1\]|strength of pre-training|probability/i.test(about)) return { low: 0, high: 1, log: false };
  if (value > 0) return { low: value / 30, high: Math.min(most, value * 30), log: true };
  if (value < 0) return { low: 3 * value, high: -3 * value, log: false };
  return { low: 0, high: 1, log: false };
};

const STEPS = 1000;
const toSlider = ({ low, high, log }, value) => STEPS * (log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low));
const fromSlider = ({ low, high, log, whole }, place) => {
  const value = log ? low * (high / low) ** (place / STEPS) : low + ((high - low) * place) / STEPS;
  return whole ? Math.round(log && value > 100 ? rounded(value) : value) : rounded(value);
};

export class Form {
  // `turn(key, value, dragging)` hears of changes; a value of undefined takes the key out.
  constructor(root, schema, turn) {
    Object.assign(this, { root, schema, turn, values: {}, resolved: {}, base: {}, open: new Map(), fields: new Map() });
    root.addEventListener("submit", (event) => event.preventDefault());
  }

  // A node of the schema with references followed and `null` left out.
  node(given) {
    let node = given;
    for (let depth = 0; depth < 8; depth++) {
      if (node.$ref) node = { ...this.schema.$defs[node.$ref.split("/").pop()], ...node, $ref: undefined };
      else if (node.anyOf) {
        const real = node.anyOf.filter((option) => option.type !== "null");
        if (real.length !== 1) break;
        node = { ...real[0], ...node, anyOf: undefined };
      } else break;
    }
    return node;
  }

  // Shows a description. The form is built anew only when its shape has changed.
  show(values, resolved, base) {
    Object.assign(this, { values, resolved, base });
    const shape = JSON.stringify(resolved, (_, value) => (typeof value === "number" ? 0 : value));
    if (shape !== this.shape) {
      this.shape = shape;
      this.build();
    } else for (const field of this.fields.values()) field.refresh();
  }

  // A hand moves the slider of one key: its field alone is refreshed.
  turned(key, value) {
    for (const data of [this.values, this.resolved]) put(data, key, value);
    this.fields.get(key)?.refresh();
  }

  build() {
    const focused = this.root.contains(document.activeElement) ? document.activeElement.id : null;
    this.fields.clear();
    this.root.replaceChildren();
    for (const key of ["title", ...SECTIONS]) {
      const node = this.schema.properties[key] && this.node(this.schema.properties[key]);
      const value = this.resolved[key];
      if (!node || (value === undefined && !OPEN.has(key))) continue;
      if (key === "title") { this.root.append(this.field("title", node)); continue; }
      if (value === undefined) continue;
      const parts = this.parts(key, node, value);
      const count = Array.isArray(value) ? `${value.length}` : "";
      this.root.append(this.section(key, key, count, parts, OPEN.has(key) || (key === "scan" && !this.resolved.model)));
    }
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    this.filter(this.query ?? "");
  }

  section(path, title, count, parts, open) {
    const details = make("details", { open: this.open.get(path) ?? open, "data-path": path }, make("summary", {}, title, make("small", {}, count)), ...parts);
    details.addEventListener("toggle", () => { if (!this.query) this.open.set(path, details.open); });
    return details;
  }

  // The fields below a path.
  parts(path, given, value) {
    let node = this.node(given);
    if (Array.isArray(value) && value.every((entry) => entry && typeof entry === "object" && !Array.isArray(entry))) {
      return value.map((entry, index) => this.section(`${path}.${index}`, entry.name ?? entry.says?.slice(0, 48) ?? `${index + 1}`, entry.engine ?? entry.kind ?? "", this.parts(`${path}.${index}`, node.items ?? {}, entry), path === "scan" && value.length === 1));
    }
    if (typeof value !== "object" || value === null || Array.isArray(value)) return [this.field(path, node)];
    // A table among several forms of a value: the one that has its keys.
    if (node.anyOf) node = node.anyOf.map((option) => this.node(option)).find((option) => option.properties && Object.keys(value).every((key) => key in option.properties)) ?? node;
    const variants = node.oneOf ?? [];
    const tag = TAGS.find((name) => variants.some((variant) => variant.properties?.[name]?.const !== undefined));
    let properties = node.properties ?? {};
    if (tag) {
      const own = variants.find((variant) => variant.properties?.[tag]?.const === value[tag]);
      const names = variants.filter((variant) => variant.properties?.[tag]).map((variant) => variant.properties[tag].const);
      const about = (name) => variants.find((variant) => variant.properties?.[tag]?.const === name)?.description;
      properties = { ...properties, ...own?.properties, [tag]: { oneOf: names.map((name) => ({ const: name, description: about(name) })), variants } };
    }
    const keys = [...new Set([...Object.keys(properties), ...Object.keys(value)])];
    if (!keys.length || keys.some((key) => key.includes("."))) return [this.field(path, node)];
    const free = typeof node.additionalProperties === "object" ? node.additionalProperties : {};
    const given_ = keys.filter((key) => get(this.values, `${path}.${key}`) !== undefined);
    const others = keys.filter((key) => !given_.includes(key));
    const one = (key) => {
      const inner = this.node(properties[key] ?? free), at = `${path}.${key}`, now = value[key];
      const nested = now && typeof now === "object" && !this.isNumbers(now) && (Array.isArray(now) ? now.some((v) => v && typeof v === "object") : true);
      if (!nested) return this.field(at, inner);
      return this.section(at, key, Array.isArray(now) ? now.length : now.kind ?? "", this.parts(at, inner, now), true);
    };
    const parts = given_.map(one);
    if (others.length) {
      const more = make("div", { class: "others", hidden: !this.open.get(`${path}+`) }, ...others.map(one));
      const words = (open) => (open ? "fewer keys" : `${others.length} more keys`);
      const button = make("button", { type: "button", class: "more", onclick: () => {
        more.hidden = !more.hidden;
        this.open.set(`${path}+`, !more.hidden);
        button.textContent = words(!more.hidden);
      } }, words(!more.hidden));
      parts.push(button, more);
    }
    return parts;
  }

  isNumbers(value) {
    return Array.isArray(value) && value.length > 0 && value.every((v) => typeof v === "number" || this.isNumbers(v));
  }

  // One key: its name, what it means, and a control.
  field(path, node) {
    const name = path.split(".").pop(), id = `key-${path}`;
    const about = (node.description ?? "").replaceAll("\n", " ");
    const label = make("label", { for: id, title: about }, make("span", { class: "key" }, name));
    if (about) label.append(make("span", { class: "about" }, about));
    const field = make("div", { class: "field", "data-key": path, "data-about": about.toLowerCase() }, label);
    const value = () => get(this.resolved, path);
    const given = () => get(this.values, path);
    const controls = this.control(path, node, id, value, about);
    field.append(...controls.parts);
    const refresh = () => {
      controls.refresh();
      field.classList.toggle("default", given() === undefined);
      field.classList.toggle("changed", JSON.stringify(given()) !== JSON.stringify(get(this.base, path)));
    };
    this.fields.set(path, { field, refresh });
    refresh();
    return field;
  }

  control(path, node, id, value, about) {
    const types = [node.type].flat();
    const options = (node.oneOf ?? node.enum?.map((name) => ({ const: name })))?.filter((option) => typeof option.const === "string");
    const now = value();
    if (options?.length && options.length === (node.oneOf ?? node.enum).length) {
      const select = make("select", { id, onchange: () => this.choose(path, node, select.value) }, ...options.map((option) => make("option", { value: option.const, title: option.description ?? "" }, option.const)));
      return { parts: [select], refresh: () => { select.value = value() ?? ""; } };
    }
    if (typeof now === "boolean" || types.includes("boolean")) {
      const box = make("input", { id, type: "checkbox", onchange: () => this.turn(path, box.checked, false) });
      return { parts: [box], refresh: () => { box.checked = Boolean(value()); } };
    }
    if (typeof now === "number") return this.number(path, node, id, value, about);
    const columns = this.isNumbers(now) ? (now[0].length ?? now.length) : Infinity;
    if (columns <= 4 && now.length <= 4) return this.matrix(path, id, value);
    const wide = typeof now === "object" && now !== null;
    const input = make("input", { id, type: "text", class: wide ? "wide" : "", placeholder: now === undefined || now === null ? "none" : "", onchange: () => {
      const written = input.value.trim();
      if (written === "") return this.turn(path, undefined, false);
      let read = written;
      // A text stays a text where one stood; anything else is written as JSON.
      if (typeof value() !== "string" && !(types.includes("string") && !/^[\[{"\d.+-]/.test(written))) try { read = JSON.parse(written); } catch { /* a word */ }
      this.turn(path, read, false);
    } });
    return { parts: [input], refresh: () => {
      const shown = value();
      if (document.activeElement !== input) input.value = shown === undefined || shown === null ? "" : typeof shown === "string" ? shown : JSON.stringify(shown);
    } };
  }

  number(path, node, id, value, about) {
    const box = make("input", { id, type: "number", step: "any", onchange: () => this.turn(path, box.value === "" ? undefined : Number(box.value), false) });
    const parts = [box];
    const from = get(this.base, path) ?? value();
    const own = scale(typeof from === "number" ? from : value(), node, about);
    let slider = null;
    if (!path.endsWith("seed") && own.high > own.low) {
      const moved = (dragging) => () => {
        const number = fromSlider(own, Number(slider.value));
        box.value = text(number);
        slider.setAttribute("aria-valuetext", text(number));
        this.turn(path, number, dragging);
      };
      slider = make("input", { type: "range", min: 0, max: STEPS, step: own.whole && !own.log ? STEPS / (own.high - own.low) : 1, "aria-label": `${path}, slider`, "data-slider": path, oninput: moved(true), onchange: moved(false) });
      parts.push(slider);
    }
    return { parts, refresh: () => {
      const now = value();
      if (document.activeElement !== box) box.value = now === undefined || now === null ? "" : text(now);
      if (slider && document.activeElement !== slider && typeof now === "number") slider.value = toSlider(own, now);
      slider?.setAttribute("aria-valuetext", box.value);
    } };
  }

  matrix(path, id, value) {
    const rows = Array.isArray(value()[0]) ? value() : [value()];
    const columns = Math.max(...rows.map((row) => row.length));
    const cells = rows.flatMap((row, i) => row.map((_, j) => {
      const place = Array.isArray(value()[0]) ? [i, j] : [j];
      const cell = make("input", { type: "number", step: "any", id: i + j === 0 ? id : undefined, "aria-label": `${path}[${place}]`, onchange: () => {
        const changed = structuredClone(value());
        const owner = place.length > 1 ? changed[place[0]] : changed;
        owner[place.at(-1)] = Number(cell.value);
        this.turn(path, changed, false);
      } });
      return { cell, place };
    }));
    const grid = make("div", { class: "matrix", style: `grid-template-columns:repeat(${columns},1fr)` }, ...cells.map(({ cell }) => cell));
    return { parts: [grid], refresh: () => {
      for (const { cell, place } of cells) if (document.activeElement !== cell) cell.value = text(place.reduce((at, index) => at?.[index], value()) ?? 0);
    } };
  }

  // Another variant of a table has other keys: those that both have stay, and keys that it needs begin with a plain value.
  choose(path, node, chosen) {
    const variant = node.variants?.find((v) => TAGS.some((tag) => v.properties?.[tag]?.const === chosen));
    if (!variant) return this.turn(path, chosen, false);
    const [owner, tag] = [path.slice(0, path.lastIndexOf(".")), path.slice(path.lastIndexOf(".") + 1)];
    const before = get(this.values, owner) ?? {}, after = { ...(before.name ? { name: before.name } : {}), [tag]: chosen };
    const simple = { integer: 2, number: 1, string: "erf(z/sqrt2)", boolean: false, array: [1] };
    for (const key of Object.keys(variant.properties)) {
      if (key === tag) continue;
      const inner = this.node(variant.properties[key]);
      if (before[key] !== undefined) after[key] = before[key];
      else if (variant.required?.includes(key)) after[key] = inner.default ?? (inner.oneOf?.[0]?.const ?? simple[[inner.type].flat()[0]] ?? 1);
    }
    this.turn(owner, after, false);
  }

  // Marks the field of a key, or the nearest one that is there.
  mark(key, message) {
    for (const { field } of this.fields.values()) {
      field.querySelector(".wrong")?.remove();
      field.querySelector("[aria-invalid]")?.removeAttribute("aria-invalid");
    }
    for (let path = key; path; path = path.slice(0, Math.max(0, path.lastIndexOf(".")))) {
      const found = this.fields.get(path)?.field;
      if (!found) continue;
      found.querySelector("input,select")?.setAttribute("aria-invalid", "true");
      found.append(make("div", { class: "wrong" }, message));
      return found;
    }
    return null;
  }

  filter(query) {
    this.query = query.trim().toLowerCase();
    for (const { field } of this.fields.values()) field.hidden = Boolean(this.query) && !`${field.dataset.key} ${field.dataset.about}`.toLowerCase().includes(this.query);
    for (const others of this.root.querySelectorAll(".others")) others.hidden = !this.query && !this.open.get(`${others.closest("details")?.dataset.path}+`);
    for (const button of this.root.querySelectorAll(".more")) button.hidden = Boolean(this.query);
    for (const details of this.root.querySelectorAll("details")) {
      const any = [...details.querySelectorAll(".field")].some((field) => !field.hidden);
      details.hidden = Boolean(this.query) && !any;
      if (this.query && any) details.open = true;
    }
  }
}
