// The explorer: one description, edited by a form, by its text, and by links; answers come from the server.
import { Form, make } from "./form.js";
import { decode, difference, encode } from "./link.js";
import { get, post, stream, tab } from "./net.js";
import * as show from "./show.js";

const byId = (id) => document.getElementById(id);
const state = { card: null, text: "", values: {}, base: {}, resolved: {}, pins: [], id: 0, moved: null, moving: false, title: "" };
let form, abort = null, typing = null;
// For measurements: from the event of a slider to the frame that shows its curve, in milliseconds, with what the server took.
window.didactLatency = [];

const status = (text, fraction) => {
  byId("status-text").textContent = text;
  byId("progress").hidden = fraction === undefined;
  byId("stop").hidden = fraction === undefined;
  if (fraction !== undefined) byId("progress").value = fraction;
};

// ---- asking ----

const asked = (more) => ({ tab, id: ++state.id, card: state.card, text: state.text, pins: state.pins.map((pin) => pin.text), ...more });

// A knob turns: one request at a time, and the last place of the knob is never left out.
const drag = async () => {
  if (state.moving || !state.moved) return;
  state.moving = true;
  const { key, value, at } = state.moved;
  let shown = null;
  const marks = { sent: performance.now() };
  state.moved = null;
  abort?.abort();
  abort = new AbortController();
  try {
    await stream("compute", asked({ mode: "drag", set: { [key]: value }, light: show.canSwap() }), (name, data) => {
      if (name === "error") return problem(data);
      if (name !== "result") return;
      marks.answered = performance.now();
      if (!byId("problem").hidden) problem(null);
      state.text = data.text;
      if (!byId("text-panel").hidden) writeText();
      form.turned(key, value);
      if (!data.outcome) return showNotes(data.notes);
      outcome(data);
      shown = data.seconds;
      marks.drawn = performance.now();
    }, abort.signal);
    // The next request waits for the frame that shows this answer, since frames that nobody sees would only make the hand wait. It knows where
    // the hand is by then, and the server works while the browser paints.
    if (shown) await new Promise((frame) => requestAnimationFrame(frame));
    if (shown) setTimeout(() => window.didactLatency.push({ key, milliseconds: performance.now() - at, server: shown, ...Object.fromEntries(Object.entries(marks).map(([name, time]) => [name, time - at])) }));
  } catch (error) { silent(error); }
  state.moving = false;
  if (state.moved) drag();
};

// The knob rests, or the text has changed: everything, as far as it is not too expensive.
const settle = async (more = {}) => {
  state.moved = null;
  abort?.abort();
  abort = new AbortController();
  const own = abort;
  byId("see").setAttribute("aria-busy", "true");
  status("Computing …", undefined);
  let notes = [];
  try {
    await stream("compute", asked({ mode: "settle", ...more }), (name, data) => {
      if (own !== abort) return;
      if (name === "error") {
        status("");
        // The text has the change that is wrong, so that the next one can make it right.
        if (typeof data.text === "string") { state.text = data.text; if (more.text === undefined) byId("text").value = data.text; }
        problem(data);
      }
      else if (name === "description") {
        problem(null);
        adopt(data, more.text === undefined);
        remember();
      } else if (name === "progress") status("Simulating …", data.fraction);
      else if (name === "result") {
        notes = data.notes ?? notes;
        outcome(data);
        const [have, most] = data.replicas;
        if (data.phase === "simulation" && !data.complete) status(`Simulating: ${have} of ${most} replicas`, have / most);
        else if (most > 0) status("Theory is done; simulating …", 0);
      } else if (name === "done") {
        status(data.complete ? `Complete in ${data.seconds.toFixed(1)} s: the numbers are those of didact run.` : "Not complete; the note says why.");
        byId("status-text").dataset.complete = data.complete;
        showNotes([...new Set([...notes, ...data.notes])]);
      }
    }, own.signal);
  } catch (error) { silent(error); }
  if (own === abort) byId("see").removeAttribute("aria-busy");
};

const silent = (error) => {
  if (error.name === "AbortError") return;
  status("");
  show.toast(error instanceof TypeError ? "The explorer has ended. Start it again with didact explore." : error.message);
};

// ---- showing ----

// Takes a description over as the server has read it.
const adopt = (described, withText) => {
  Object.assign(state, { text: described.text, values: described.values, resolved: described.resolved, title: described.title });
  if (withText) writeText();
  // A file that could not be read when it was opened begins with the first state that can.
  if (!state.base) state.base = structuredClone(described.values);
  byId("title").textContent = described.title;
  document.title = `${described.title} · didact explorer`;
  show.setReferences(described.references);
  const about = described.resolved.about;
  byId("about").hidden = !about;
  byId("about").querySelector("p").textContent = about ?? "";
  form.show(described.values, described.resolved, state.base);
};

const writeText = () => {
  if (byId("text").value === state.text) return;
  byId("text").value = state.text;
  gutter();
};

const outcome = (data) => {
  show.figures(data.outcome.figures);
  show.numbers(data.outcome);
  if (data.notes) showNotes(data.notes);
};

const showNotes = (notes) => {
  byId("notes").hidden = notes.length === 0;
  byId("notes").replaceChildren(...notes.map((note) => make("li", {}, note)));
};

// An error at its field, at its line, and in words; null takes it away.
const problem = (error) => {
  const box = byId("problem");
  box.hidden = !error;
  form.mark(error?.key ?? "", error?.message ?? "");
  gutter(error?.line);
  byId("figures").querySelectorAll(":scope > *").forEach((child) => child.classList.toggle("stale", Boolean(error)));
  if (!error) return;
  box.replaceChildren(error.message);
  if (error.hint) box.append(make("p", { class: "hint" }, `hint: ${error.hint}`));
  if (error.line) box.append(make("button", { type: "button", onclick: () => { choose("text"); goTo(error.line, error.column, error.length); } }, `Line ${error.line}`));
};

const gutter = (bad) => {
  const lines = byId("text").value.split("\n").length;
  byId("gutter").replaceChildren(...Array.from({ length: lines }, (_, index) => (index + 1 === bad ? make("span", { class: "bad" }, `${index + 1}`) : `${index + 1}`)).flatMap((line) => [line, "\n"]));
  byId("gutter").scrollTop = byId("text").scrollTop;
};

const goTo = (line, column, length) => {
  const area = byId("text"), start = area.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0) + column - 1;
  area.focus();
  area.setSelectionRange(start, start + length);
  area.scrollTop = (line - 5) * parseFloat(getComputedStyle(area).lineHeight);
};

// ---- states and links ----

const remember = () => {
  const { set, unset } = difference(state.base, state.values);
  history.replaceState(null, "", encode({ card: state.card, set, unset, pins: state.pins.map(({ set, unset }) => ({ set, unset })) }));
};

const view = (name) => { document.body.dataset.view = name; };

const open = async (card, set = {}, unset = [], pins = []) => {
  const opened = await post("open", { card, set, unset });
  if (opened.error) { show.toast(opened.error.message); return view("gallery"); }
  const texts = await Promise.all(pins.map((pin) => post("open", { card, ...pin })));
  Object.assign(state, { card, text: opened.text, values: opened.values, base: opened.base, pins: pins.map((pin, index) => ({ ...pin, text: texts[index].text })) });
  byId("figures").replaceChildren();
  byId("claims").replaceChildren();
  byId("measures").replaceChildren();
  form.shape = null;
  form.open.clear();
  byId("text").value = opened.text;
  gutter();
  pinned();
  view("explore");
  if (!opened.base) choose("text");
  scrollTo(0, 0);
  await settle();
};

const restore = async () => {
  const asked = decode(location.hash);
  if (asked) return open(asked.card, asked.set, asked.unset, asked.pins).catch((error) => { show.toast(error.message); view("gallery"); });
  abort?.abort();
  view("gallery");
};

const pinned = () => {
  const button = document.querySelector("[data-act=unpin]");
  button.hidden = state.pins.length === 0;
  button.textContent = `Unpin ${state.pins.length}`;
};

const copy = async (text, what) => {
  try { await navigator.clipboard.writeText(text); } catch {
    const area = make("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  show.toast(`${what} copied.`);
};

const quoted = (text) => (text.includes("'''") ? JSON.stringify(text) : `r'''\n${text}'''`);
const python = () => `import didact\n\ne = didact.Experiment.from_toml(${quoted(state.text)})\nr = e.run()          # a folder with tables, figures and a report\nfor claim in r.claims:\n    print(claim)\n`;

const acts = {
  pin() {
    if (state.pins.length >= 3) return show.toast("Three states are pinned; unpin them first.");
    state.pins.push({ ...difference(state.base, state.values), text: state.text });
    pinned();
    remember();
    settle();
  },
  unpin() { state.pins = []; pinned(); remember(); settle(); },
  link: () => copy(location.href, "Link"),
  toml: () => copy(state.text, "TOML"),
  python: () => copy(python(), "Python"),
  async save() {
    const saved = await post("save", asked({})).catch((error) => ({ error }));
    show.toast(saved.error ? saved.error.message : `Saved: ${saved.file}`);
  },
  run() {
    const sizes = [["normal", "As described"], ...(state.values.quick ? [["quick", "Quick (seconds)"]] : []), ...(state.values.full ? [["full", "Full, as large as the source"]] : [])];
    const buttons = sizes.map(([size, words]) => make("button", { type: "button", class: size === "normal" ? "primary" : "", onclick: () => run(size) }, words));
    show.dialog("Run on disk", make("p", {}, "A real run: a folder with tables, figures, provenance and a report. What is done is kept if you stop it, and the same run goes on from there. Copied as TOML, ", make("code", {}, "didact sweep submit"), " shares out on a cluster what is too large for this machine."), make("div", { class: "row" }, ...buttons));
  },
};

const run = async (size) => {
  const bar = make("progress", { max: 1, value: 0 }), words = make("p", { role: "status" }, "Running …"), controller = new AbortController();
  const stop = make("button", { type: "button", onclick: () => { controller.abort(); words.textContent = "Stopped. What is done is kept."; bar.remove(); stop.remove(); } }, "Stop");
  show.dialog("Run on disk", words, make("div", { class: "row" }, bar, stop));
  byId("dialog").addEventListener("close", () => controller.abort(), { once: true });
  abort?.abort();
  // A tab of its own: a knob that turns meanwhile does not end the run.
  const body = { ...asked({ size }), tab: `${tab}run`, id: Date.now() };
  try {
    await stream("run", body, (name, data) => {
      if (name === "progress") bar.value = data.fraction;
      else if (name === "error") { words.textContent = `${data.message}${data.hint ? `\nhint: ${data.hint}` : ""}`; bar.remove(); stop.remove(); }
      else if (name === "finished") {
        words.replaceChildren(data.reused ? "Found: it has been run before. " : "Done. ", make("a", { href: data.report, target: "_blank", id: "report-link" }, "Open the report"), make("br"), make("code", {}, data.folder));
        if (data.failures) words.append(make("p", {}, `${data.failures} failures; see the report.`));
        bar.remove();
        stop.remove();
      }
    }, controller.signal);
  } catch (error) { silent(error); }
};

// ---- hands ----

const choose = (which) => {
  for (const [tabName, panel] of [["form", "form"], ["text", "text-panel"]]) {
    const chosen = tabName === which;
    byId(`tab-${tabName}`).setAttribute("aria-selected", chosen);
    byId(`tab-${tabName}`).tabIndex = chosen ? 0 : -1;
    byId(panel).hidden = !chosen;
  }
  byId("search").hidden = which !== "form";
  gutter();
};

const turn = (key, value, dragging) => {
  if (dragging) { state.moved = { key, value, at: performance.now() }; return drag(); }
  return settle(value === undefined ? { unset: [key] } : { set: { [key]: value } });
};

const start = async () => {
  const [schema, cards] = await Promise.all([get("schema"), get("gallery")]);
  form = new Form(byId("form"), schema, turn);
  show.listen();
  show.gallery(cards, (id) => { location.hash = encode({ card: id, set: {}, unset: [], pins: [] }); });
  for (const which of ["form", "text"]) {
    byId(`tab-${which}`).addEventListener("click", () => choose(which));
    byId(`tab-${which}`).addEventListener("keydown", (event) => {
      if (!["ArrowLeft", "ArrowRight"].includes(event.key)) return;
      const other = which === "form" ? "text" : "form";
      choose(other);
      byId(`tab-${other}`).focus();
    });
  }
  byId("search").addEventListener("input", (event) => form.filter(event.target.value));
  byId("text").addEventListener("input", () => {
    gutter();
    clearTimeout(typing);
    typing = setTimeout(() => settle({ text: byId("text").value }), 300);
  });
  byId("text").addEventListener("scroll", () => { byId("gutter").scrollTop = byId("text").scrollTop; });
  byId("stop").addEventListener("click", () => { abort?.abort(); abort = null; status("Stopped."); });
  byId("to-gallery").addEventListener("click", () => { location.hash = ""; });
  byId("dialog").addEventListener("click", (event) => { if (event.target === byId("dialog") || event.target.closest("[data-close]")) byId("dialog").close(); });
  for (const button of document.querySelectorAll("[data-act]")) button.addEventListener("click", () => acts[button.dataset.act]());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input,textarea,select,dialog[open]")) return;
    if (event.key === "/") { event.preventDefault(); (document.body.dataset.view === "explore" ? byId("search") : byId("gallery-search")).focus(); }
    else if (event.key === "g") location.hash = "";
    else if (event.key === "p" && document.body.dataset.view === "explore") acts.pin();
  });
  window.addEventListener("hashchange", restore);
  if (!location.hash && cards.cards[0]?.group === "yours") location.replace(encode({ card: "yours", set: {}, unset: [], pins: [] }));
  else await restore();
};

start().catch(silent);
