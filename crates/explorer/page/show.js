// What there is to see: figures, numbers, claims, explanations, the gallery.
import { make } from "./form.js";
import { post } from "./net.js";

const byId = (id) => document.getElementById(id);
// HTML that the server has made of escaped text and drawings.
const html = (markup) => { const template = document.createElement("template"); template.innerHTML = markup; return template.content; };

// Makes what is on the page like `next`, and touches only what differs: the browser then lays out and paints no more than that. Nodes of
// `next` may be moved into the page.
const patch = (now, next) => {
  if (now.nodeName !== next.nodeName) return now.replaceWith(next);
  if (now.nodeType === Node.TEXT_NODE) { if (now.data !== next.data) now.data = next.data; return; }
  for (const { name, value } of next.attributes) if (now.getAttribute(name) !== value) now.setAttribute(name, value);
  if (now.attributes.length > next.attributes.length) for (const { name } of [...now.attributes]) if (!next.hasAttribute(name)) now.removeAttribute(name);
  patchAll(now, [...next.childNodes]);
};
const patchAll = (parent, list) => {
  const before = [...parent.childNodes];
  before.slice(list.length).forEach((child) => child.remove());
  list.forEach((child, index) => (before[index] ? patch(before[index], child) : parent.append(child)));
};

// ---- figures ----

// The zoom of a figure as fractions of each panel, so that a new drawing keeps it.
const zoomOf = (figure) => figure?.didact?.panels.map(({ frame: f, shown: s, zoomed }) => zoomed && [(s.left - f.left) / (f.right - f.left), (s.right - f.left) / (f.right - f.left), (s.top - f.top) / (f.bottom - f.top), (s.bottom - f.top) / (f.bottom - f.top)]);
const zoomAgain = (figure, zoom) => zoom?.forEach((part, index) => {
  const panel = figure.didact?.panels[index];
  if (!part || !panel) return;
  const { left, right, top, bottom } = panel.frame;
  panel.show({ left: left + part[0] * (right - left), right: left + part[1] * (right - left), top: top + part[2] * (bottom - top), bottom: top + part[3] * (bottom - top) });
});

// Whether the figures on the page can take new drawings as they are: panels that were put below each other are arranged by the script.
export const canSwap = () => {
  const all = [...byId("figures").querySelectorAll("figure.didact-figure")];
  return all.length > 0 && all.every((figure) => figure.didact && !figure.didact.stacked && !figure.didact.panels.some((panel) => panel.zoomed));
};

// The parts of a drawing: every tag with the text behind it.
const tags = (svg) => svg.split("<").slice(1);
const plain = (text) => text.replace(/&(lt|gt|quot|apos|amp);/g, (_, name) => ({ lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" })[name]);

// Shows another drawing in the place of one. Where both have the same elements, as while a knob turns, only attributes and texts that
// differ are touched: nothing is parsed, and the browser lays out and paints no more than that.
const redraw = (drawing, svg) => {
  const next = tags(svg), before = drawing.tags;
  // The name of an element and those of its attributes, with the text behind an element that has none inside; nothing for what must be read
  // as a whole.
  const shape = (tag) => {
    if (tag[0] === "/" || tag.includes("&#")) return NaN;
    const end = tag.lastIndexOf(">");
    return tag.slice(0, end).replace(/="[^"]*"/g, "") + (tag[end - 1] === "/" ? tag.slice(end) : "");
  };
  if (before?.length === next.length && next.every((tag, index) => tag === before[index] || shape(tag) === shape(before[index]))) {
    let at = -1;
    next.forEach((tag, index) => {
      if (tag[0] === "/") return;
      at++;
      if (tag === before[index]) return;
      const element = drawing.elements[at], end = tag.lastIndexOf(">");
      for (const [, key, value] of tag.slice(0, end).matchAll(/([\w:-]+)="([^"]*)"/g)) if (!before[index].includes(` ${key}="${value}"`)) element.setAttribute(key, plain(value));
      if (tag[end - 1] === "/") return;
      const text = plain(tag.slice(end + 1));
      if (element.firstChild?.nodeType === Node.TEXT_NODE) element.firstChild.data = text;
      else if (text) element.prepend(text);
    });
    drawing.tags = next;
    return;
  }
  // A drawing that has come with its numbers reads them out; this one has none.
  const made = html(svg).firstElementChild;
  Object.assign(made, { tags: next, elements: [made, ...made.querySelectorAll("*")] });
  drawing.replaceWith(made);
};

export const figures = (list) => {
  const root = byId("figures");
  const before = new Map([...root.children].map((child) => [child.dataset.name, child]));
  const now = list.map(({ name, html: markup, svg, waits }) => {
    const old = before.get(name);
    const drawing = svg && old?.querySelector(".drawing > svg");
    if (drawing) {
      redraw(drawing, svg);
      old.classList.remove("stale");
      return old;
    }
    if (markup === undefined) {
      if (old && !old.classList.contains("waits")) { old.classList.add("stale"); return old; }
      return make("div", { class: "waits", "data-name": name }, `${name}: ${waits}`);
    }
    const holder = make("div", { "data-name": name });
    holder.append(html(markup));
    holder.zoom = zoomOf(old?.firstElementChild);
    return holder;
  });
  if (now.length !== root.children.length || now.some((child, index) => child !== root.children[index])) root.replaceChildren(...now);
  window.didactFigures?.enliven(root);
  for (const holder of now) if (holder.zoom && holder.firstElementChild) zoomAgain(holder.firstElementChild, holder.zoom);
};

// ---- numbers ----

const SIGNS = { holds: "✓", fails: "✗", differs: "≠", within: "≤", "not-judged": "?" };

export const numbers = (outcome) => {
  patchAll(byId("definitions"), [...html(outcome.definitions).childNodes]);
  const claims = outcome.claims.map((claim) => {
    const waiting = claim.progress === "waiting";
    const verdict = waiting ? "waits for the simulation" : `${SIGNS[claim.class]} ${claim.verdict}${claim.progress === "provisional" ? " so far" : ""}`;
    const made = make("div", { class: `claim ${waiting ? "" : claim.class} ${claim.progress}` }, make("span", { class: "verdict" }, verdict), make("p", {}, html(claim.says), " ", make("small", {}, html(claim.source))));
    if (!waiting) made.append(make("small", {}, html(claim.evidence)));
    return made;
  });
  patchAll(byId("claims"), claims.length ? [make("h3", {}, "Claims"), ...claims] : []);
  const parts = [];
  const group = (title, list) => { if (list.length) parts.push(make("h3", {}, title), ...list.flatMap(number)); };
  group("Predicted", outcome.beside);
  group("Measured", outcome.measures);
  const event = (reading) => reading.explain[0] === "measure:event-time";
  group("Events", outcome.readings.filter(event));
  const last = outcome.readings.filter((reading) => !event(reading));
  lastValues = last;
  if (last.length) {
    const open = byId("last-values")?.open ?? !outcome.measures.length;
    parts.push(make("details", { id: "last-values", open }, make("summary", {}, `Last values (${last.length})`), make("div", {}, ...(open ? last.flatMap(number) : []))));
  }
  if (outcome.failures.length) parts.push(make("h3", {}, "What failed"), ...outcome.failures.map((why) => make("p", {}, why)));
  patchAll(byId("measures"), parts);
};

// Last values of the columns, which are shown when somebody opens their list.
let lastValues = [];

// Numbers stay on the page while their values change, so that the buttons beside them are heard here.
export const listen = () => {
  byId("measures").addEventListener("click", (event) => {
    const what = event.target.closest("[data-explain]")?.dataset.explain;
    if (what) explained(event.target.closest(".number").dataset.number, JSON.parse(what));
  });
  byId("measures").addEventListener("toggle", ({ target }) => {
    if (target.open) patchAll(target.querySelector("div"), lastValues.flatMap(number));
  }, true);
};

const number = ({ name, progress, values, explain }) => values.map((value, index) => {
  const known = value.text !== undefined;
  const shown = known ? value.text : progress === "waiting" ? "waits" : value.why;
  const row = make("div", { class: `number ${progress}`, "data-number": name }, make("span", { class: "name" }, index === 0 ? name : ""), make("span", { class: known ? "value" : "value none" }, shown));
  row.append(index === 0 && explain.length ? make("button", { type: "button", title: "Where this number comes from", "aria-label": `Explain ${name}`, "data-explain": JSON.stringify(explain) }, "?") : make("span"));
  if (value.at) row.append(make("span", { class: "at" }, value.at));
  return row;
});

// ---- dialogs ----

export const dialog = (title, ...body) => {
  byId("dialog-title").textContent = title;
  byId("dialog-body").replaceChildren(...body);
  if (!byId("dialog").open) byId("dialog").showModal();
};

let references = [];
export const setReferences = (list) => { references = list; };

const site = (locator) => {
  const [kind, rest] = locator.split(/:(.*)/s);
  const host = { doi: "//doi.org/", arXiv: "//arxiv.org/abs/" }[kind];
  return host ? make("a", { href: `https:${host}${rest}`, rel: "noreferrer", target: "_blank" }, locator) : locator;
};

const explained = async (name, what) => {
  const answer = await post("explain", { what });
  if (answer.error) return dialog(name, make("p", {}, answer.error.message));
  const parts = answer.explanations.map(({ says, equation, page, anchor }) => {
    const part = make("div", { class: "explained" }, make("p", {}, html(says)));
    if (equation) part.append(make("div", { class: "equation" }, html(equation)));
    if (page) part.append(make("p", {}, make("a", { href: `derivations/${page}#${anchor}`, target: "_blank" }, `Derivation: ${page}, (${anchor.replace("eq-", "")})`)));
    return part;
  });
  const cited = references.map(({ citation, locator }) => make("li", {}, `${citation} `, site(locator)));
  dialog(name, html(answer.definitions), ...parts, ...(cited.length ? [make("h3", {}, "References"), make("ul", {}, ...cited)] : []));
};

// ---- gallery ----

export const gallery = ({ cards, starting }, open) => {
  const shelf = (title, note, list) => make("div", { class: "shelf" }, make("h3", {}, title, " ", make("small", {}, note)), make("div", { class: "cards" }, ...list.map(card)));
  const card = (it) => {
    const picture = it.thumbnail ? make("img", { src: `thumbnails/${it.id}`, alt: "", loading: "lazy" }) : make("span", { "aria-hidden": "true" }, "+");
    return make("button", { type: "button", class: "card", "data-card": it.id, "data-words": `${it.title} ${it.about} ${it.family} ${it.id}`.toLowerCase(), onclick: () => open(it.id) }, make("div", { class: "picture" }, picture), make("b", {}, it.title), make("small", {}, it.about));
  };
  const first = starting.map((id) => cards.find((it) => it.id === id)).filter(Boolean);
  const own = cards.filter((it) => it.group === "yours");
  const shelves = [...(own.length ? [shelf("Your file", "", own)] : []), shelf("Start here", "theory follows your hand", first)];
  for (const group of [...new Set(cards.map((it) => it.group))].filter((name) => name !== "yours")) {
    const list = cards.filter((it) => it.group === group && !starting.includes(it.id));
    if (list.length) shelves.push(shelf(list[0].groupTitle, group === "examples" ? "" : group, list));
  }
  byId("shelves").replaceChildren(...shelves);
  byId("gallery-search").addEventListener("input", (event) => {
    const query = event.target.value.trim().toLowerCase();
    for (const it of document.querySelectorAll(".card")) it.hidden = !it.dataset.words.includes(query);
    for (const it of document.querySelectorAll(".shelf")) it.hidden = ![...it.querySelectorAll(".card")].some((c) => !c.hidden);
  });
};

let timer;
export const toast = (message) => {
  byId("toast").textContent = message;
  byId("toast").classList.add("shown");
  clearTimeout(timer);
  timer = setTimeout(() => byId("toast").classList.remove("shown"), 3500);
};
