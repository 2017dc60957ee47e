// Figures of a page come alive: read-out of the nearest point, zoom, pan, series on and off, copies of the data.
//
// A figure is <figure class="didact-figure"> with the drawing (an SVG as the file has it), a JSON block with the numbers, a tool bar
// and a table. In the drawing every panel, layer, axis and legend entry is a group with a class and numbers (data-panel,
// data-layer, data-series) that are places in the JSON. Lengths are points of the drawing, y down. All text is set as text, never
// as markup.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";

  // ---- numbers ----

  // A number as a reader wants it: at most `digits` digits, powers of ten only where they are shorter.
  const show = (value, digits = 6) => {
    if (value === null || value === undefined || !Number.isFinite(value)) return "";
    const size = Math.abs(value);
    const text = size !== 0 && (size < 1e-4 || size >= 1e7)
      ? value.toExponential(digits - 1).replace(/\.?0+e/, "e").replace("e+", "e")
      : String(Number(value.toPrecision(digits)));
    return text.replaceAll("-", "\u2212");
  };
  // The same with an ASCII minus, for programs.
  const raw = (value) => (value === null || value === undefined ? "" : String(value));

  // An axis maps values to the page: `start` is the place of `low`, `end` that of `high`.
  const axis = (spec, start, end) => {
    const map = spec.log ? Math.log10 : (value) => value;
    const back = spec.log ? (value) => 10 ** value : (value) => value;
    const low = map(spec.low), high = map(spec.high);
    return {
      start, end, log: spec.log,
      place: (value) =>
        value === null || (spec.log && value <= 0) ? NaN : start + ((map(value) - low) / (high - low)) * (end - start),
      value: (place) => back(low + ((place - start) / (end - start)) * (high - low)),
    };
  };

  // Ticks of a zoomed axis between two values: [value, label, exponent]; minor ticks have no label.
  const ticks = (low, high, log) => {
    if (log && high / low > 30) {
      const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
      const step = Math.max(1, Math.ceil((last - first) / 6));
      const found = [];
      for (let power = first - 1; power <= last; power += 1) {
        if (power >= first && (power - first) % step === 0) found.push([10 ** power, "10", power]);
        if (step === 1) for (let digit = 2; digit < 10; digit++) found.push([digit * 10 ** power, null]);
      }
      return found;
    }
    const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough * 0.99);
    const found = [];
    const digits = Math.max(1, Math.ceil(Math.log10(Math.max(Math.abs(low), Math.abs(high)) / step)) + 2);
    for (let index = Math.ceil(low / step - 1e-9); index * step <= high * (1 + 1e-12) + step * 1e-9; index++) {
      found.push([index * step, show(index === 0 ? 0 : index * step, Math.min(15, digits))]);
    }
    return found;
  };

  // ---- drawing ----

  const element = (name, attributes, parent) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (parent) parent.append(made);
    return made;
  };
  const two = (value) => Math.round(value * 100) / 100;

  // Path data with every point moved by `move`; our paths have absolute coordinates only (M, L, Q, C, Z).
  const moved = (data, move) =>
    data.replace(/(-?[\d.]+)[ ]?(-?[\d.]+)/g, (_, x, y) => {
      const [newX, newY] = move(Number(x), Number(y));
      return `${two(newX)} ${two(newY)} `;
    });

  class Panel {
    constructor(figure, spec, group) {
      Object.assign(this, { figure, spec, group });
      const [left, top, right, bottom] = spec.frame;
      this.frame = { left, top, right, bottom };
      this.whole = { x: axis(spec.x, left, right), y: axis(spec.y, bottom, top) };
      // Numbers of the series that are switched off.
      this.hidden = new Set();
      // What the panel shows, in points of the drawing: all of it at first.
      this.shown = { left, top, right, bottom };
      this.layers = spec.layers.map((layer) => ({ ...layer, groups: this.own(`[data-layer="${layer.layer}"]`) }));
      this.notes = this.own(".note");
      this.ticks = this.own(".ticks");
    }

    // Parts of this panel, not of its insets.
    own(selector) {
      return [...this.group.querySelectorAll(selector)].filter((part) => part.closest(".panel") === this.group);
    }

    get zoomed() {
      const { left, top, right, bottom } = this.frame, shown = this.shown;
      return shown.left !== left || shown.top !== top || shown.right !== right || shown.bottom !== bottom;
    }

    // From the drawing as it was to the drawing as it is zoomed, and a place on the page from a value.
    across(x) { return this.frame.left + ((x - this.shown.left) / (this.shown.right - this.shown.left)) * (this.frame.right - this.frame.left); }
    up(y) { return this.frame.top + ((y - this.shown.top) / (this.shown.bottom - this.shown.top)) * (this.frame.bottom - this.frame.top); }
    place(x, y) { return [this.across(this.whole.x.place(x)), this.up(this.whole.y.place(y))]; }
    inside(x, y) {
      const { left, top, right, bottom } = this.frame, edge = 0.01;
      return x >= left - edge && x <= right + edge && y >= top - edge && y <= bottom + edge;
    }

    // Shows a part of the whole, no smaller than a fiftieth of it and never beyond its edges.
    show(part) {
      const { left, top, right, bottom } = this.frame;
      const fit = (from, to, low, high) => {
        const length = Math.min(high - low, Math.max((high - low) / 50, to - from));
        const start = Math.min(Math.max((from + to - length) / 2, low), high - length);
        return [start, start + length];
      };
      const [l, r] = fit(part.left, part.right, left, right);
      const [t, b] = fit(part.top, part.bottom, top, bottom);
      this.shown = { left: l, right: r, top: t, bottom: b };
      this.draw();
    }

    reset() {
      this.shown = { ...this.frame };
      this.draw();
    }

    // Redraws at the present zoom. At no zoom everything is as the file has it.
    draw() {
      const zoomed = this.zoomed;
      this.overlay?.remove();
      for (const group of this.ticks) group.style.display = zoomed ? "none" : "";
      for (const layer of this.layers) for (const group of layer.groups) this.drawLayer(layer, group, zoomed);
      for (const note of this.notes) {
        note.style.display = "";
        note.removeAttribute("transform");
        if (!zoomed) continue;
        const box = note.getBBox(), x = box.x + box.width / 2, y = box.y + box.height / 2;
        const [newX, newY] = [this.across(x), this.up(y)];
        if (this.inside(newX, newY)) note.setAttribute("transform", `translate(${two(newX - x)} ${two(newY - y)})`);
        else note.style.display = "none";
      }
      if (zoomed) this.drawTicks();
      this.figure.zoomChanged();
    }

    drawLayer(layer, group, zoomed) {
      const move = (x, y) => [this.across(x), this.up(y)];
      for (const part of group.querySelectorAll("path, image")) {
        if (part.tagName === "image") {
          const names = ["x", "y", "width", "height"];
          part.before_ ??= names.map((name) => Number(part.getAttribute(name)));
          const [x, y, width, height] = part.before_;
          const [newX, newY] = zoomed ? move(x, y) : [x, y];
          const [endX, endY] = zoomed ? move(x + width, y + height) : [x + width, y + height];
          [newX, newY, endX - newX, endY - newY].forEach((value, i) => part.setAttribute(names[i], two(value)));
          continue;
        }
        part.before_ ??= part.getAttribute("d");
        if (!zoomed) part.setAttribute("d", part.before_);
        else if (layer.kind !== "markers") part.setAttribute("d", moved(part.before_, move));
        // Markers keep their size: error bars stand in a group of their own.
        else part.setAttribute("d", part.closest(".bars") ? this.bars(layer) : this.marks(layer));
      }
    }

    // Places of the points of a layer that the zoomed panel shows.
    points(layer) {
      const x = this.figure.column(layer.x), y = this.figure.column(layer.y);
      return x.map((_, i) => [i, ...this.place(x[i], y[i])]).filter(([, px, py]) => this.inside(px, py));
    }

    marks(layer) {
      return this.points(layer).map(([, px, py]) => moved(layer.marker, (x, y) => [x + px, y + py])).join("");
    }

    bars(layer) {
      const cap = 1.6, { left, top, right, bottom } = this.frame;
      const column = (name) => (layer[name] === undefined ? null : this.figure.column(layer[name]));
      const [low, high, first, last] = ["low", "high", "left", "right"].map(column);
      const bound = (value, from, to) => Math.min(Math.max(Number.isNaN(value) ? to : value, from), to);
      let data = "";
      for (const [i, px, py] of this.points(layer)) {
        if (low && high[i] > low[i]) {
          const ends = [low[i], high[i]].map((value) => this.up(this.whole.y.place(value)));
          data += `M${two(px)} ${two(bound(ends[0], top, bottom))}L${two(px)} ${two(bound(ends[1], top, bottom))}`;
          for (const end of ends) if (end >= top && end <= bottom) data += `M${two(px - cap)} ${two(end)}L${two(px + cap)} ${two(end)}`;
        }
        if (first && last[i] > first[i]) {
          const ends = [first[i], last[i]].map((value) => this.across(this.whole.x.place(value)));
          const from = Number.isNaN(ends[0]) ? left : bound(ends[0], left, right);
          data += `M${two(from)} ${two(py)}L${two(bound(ends[1], left, right))} ${two(py)}`;
          for (const end of ends) if (end >= left && end <= right) data += `M${two(end)} ${two(py - cap)}L${two(end)} ${two(py + cap)}`;
        }
      }
      return data;
    }

    // Ticks and their labels at the present zoom, on all four sides as in the file.
    drawTicks() {
      const overlay = (this.overlay = element("g", { class: "zoomed-ticks", fill: "#1a1a1a" }, this.group));
      const { left, top, right, bottom } = this.frame, size = this.spec.inset ? 6 : 8, length = size / 2;
      let data = "";
      const label = (x, y, anchor, text, power) => {
        if (text === null) return;
        const made = element("text", { x: two(x), y: two(y), "font-size": size, "text-anchor": anchor, "font-family": "KaTeX_Main, Latin Modern Roman, Times New Roman, serif" }, overlay);
        made.textContent = text;
        if (power === undefined) return;
        const raised = element("tspan", { dy: -0.4 * size, "font-size": 0.7 * size }, made);
        raised.textContent = show(power);
      };
      const range = (axis, from, to) => [axis.value(from), axis.value(to)];
      const [x, y] = [this.whole.x, this.whole.y];
      for (const [value, text, power] of ticks(...range(x, this.shown.left, this.shown.right), x.log)) {
        const at = this.across(x.place(value));
        if (at < left - 0.1 || at > right + 0.1) continue;
        const tick = text === null ? length / 2 : length;
        data += `M${two(at)} ${bottom}L${two(at)} ${two(bottom - tick)}M${two(at)} ${top}L${two(at)} ${two(top + tick)}`;
        label(at, bottom + 1.4 * size, "middle", text, power);
      }
      for (const [value, text, power] of ticks(...range(y, this.shown.bottom, this.shown.top), y.log)) {
        const at = this.up(y.place(value));
        if (at < top - 0.1 || at > bottom + 0.1) continue;
        const tick = text === null ? length / 2 : length;
        data += `M${left} ${two(at)}L${two(left + tick)} ${two(at)}M${right} ${two(at)}L${two(right - tick)} ${two(at)}`;
        label(left - 0.4 * size, at + 0.32 * size, "end", text, power);
      }
      element("path", { d: data, stroke: "#1a1a1a", "stroke-width": 0.7, fill: "none" }, overlay);
    }

    // Every point that can be read out: [layer, index], series that are switched off left out.
    readable() {
      return this.layers.filter((layer) => layer.x !== undefined && !["guide", "slope"].includes(layer.kind) && !this.hidden.has(layer.series));
    }

    // The point nearest to a place on the page: {panel, layer, index, x, y, distance}.
    nearest(px, py) {
      let best = null;
      for (const layer of this.readable()) {
        const xs = this.figure.column(layer.x);
        for (let index = 0; index < xs.length; index++) {
          const [x, y] = this.at(layer, index);
          const distance = Math.hypot(x - px, y - py);
          if (this.inside(x, y) && (best === null || distance < best.distance)) best = { panel: this, layer, index, x, y, distance };
        }
      }
      return best;
    }

    // Place of a point; for a band the middle of its two edges on the page.
    at(layer, index) {
      const x = this.figure.column(layer.x)[index];
      if (layer.y !== undefined) return this.place(x, this.figure.column(layer.y)[index]);
      const [low, high] = [layer.low, layer.high].map((column) => this.place(x, this.figure.column(column)[index]));
      return [low[0], (low[1] + high[1]) / 2];
    }

    // The cell of a heat map under a place on the page.
    cell(px, py) {
      for (const layer of this.layers) {
        if (!layer.rows) continue;
        const { x, y } = this.whole;
        const back = (value, from, to, start, end) => start + ((value - from) / (to - from)) * (end - start);
        const pageX = back(px, this.frame.left, this.frame.right, this.shown.left, this.shown.right);
        const pageY = back(py, this.frame.top, this.frame.bottom, this.shown.top, this.shown.bottom);
        const [left, right] = layer.across.map(x.place), [bottom, top] = layer.up.map(y.place);
        const column = Math.floor(((pageX - left) / (right - left)) * layer.rows[0].length);
        const row = Math.floor(((pageY - bottom) / (top - bottom)) * layer.rows.length);
        const value = layer.rows[row]?.[column];
        if (value !== undefined && value !== null) return { x: x.value(pageX), y: y.value(pageY), value };
      }
      return null;
    }
  }

  // ---- a figure ----

  class Figure {
    constructor(root) {
      this.root = root;
      this.svg = root.querySelector(".drawing > svg");
      this.data = JSON.parse(root.querySelector("script.data").textContent);
      // The file, before anything is changed.
      this.file = new XMLSerializer().serializeToString(this.svg);
      // Browsers show titles as tool tips, which would cover the read-out; the text is in the label of the drawing.
      for (const title of this.svg.querySelectorAll("title")) title.remove();
      const groups = [...this.svg.querySelectorAll(".panel")];
      this.panels = this.data.panels.map((spec, i) => new Panel(this, spec, groups.find((g) => g.dataset.panel === String(i))));
      this.readout = root.querySelector(".readout");
      this.ring = element("circle", { r: 3.5, fill: "none", stroke: "#d55e00", "stroke-width": 1.2, class: "ring" });
      this.legend();
      this.pointer();
      this.keys();
      this.tools();
      this.fit();
      new ResizeObserver(() => this.fit()).observe(root.querySelector(".drawing"));
      root.classList.add("alive");
    }

    column(index) { return this.data.columns[index]; }

    // -- series on and off --

    legend() {
      for (const entry of this.svg.querySelectorAll(".entry")) {
        const box = entry.getBBox();
        // All of the entry answers, also between its letters.
        entry.prepend(element("rect", { x: box.x - 2, y: box.y - 1, width: box.width + 4, height: box.height + 2, fill: "transparent" }));
        // A legend inside a panel speaks of that panel and its insets, one below the panels of all.
        const around = entry.closest(".panel"), series = Number(entry.dataset.series);
        const panels = this.panels.filter((panel) => !around || around.contains(panel.group));
        const name = panels.flatMap((panel) => panel.layers).find((layer) => layer.series === series)?.name ?? "";
        for (const [key, value] of [["tabindex", "0"], ["role", "button"], ["aria-pressed", "true"], ["aria-label", name]]) entry.setAttribute(key, value);
        const toggle = () => this.toggle(series, panels, entry);
        entry.addEventListener("click", toggle);
        entry.addEventListener("keydown", (event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          toggle();
        });
      }
    }

    // Switches a series of some panels off, or on again.
    toggle(series, panels, entry) {
      const off = entry.getAttribute("aria-pressed") === "true";
      entry.setAttribute("aria-pressed", String(!off));
      entry.style.opacity = off ? 0.35 : "";
      for (const panel of panels) {
        if (off) panel.hidden.add(series); else panel.hidden.delete(series);
        for (const layer of panel.layers) {
          if (layer.series === series) for (const group of layer.groups) group.style.display = off ? "none" : "";
        }
      }
      this.clear();
    }

    // -- read-out --

    // The panel under a pointer event, insets before what they cover, and the place in its coordinates.
    under(event) {
      for (const panel of [...this.panels].sort((a, b) => Number(b.spec.inset) - Number(a.spec.inset))) {
        const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(panel.group.getScreenCTM().inverse());
        if (panel.inside(point.x, point.y)) return { panel, x: point.x, y: point.y };
      }
      return null;
    }

    read(found) {
      const { panel, layer, index } = found;
      const column = (name) => (layer[name] === undefined ? null : this.column(layer[name])[index]);
      const [x, y, low, high] = ["x", "y", "low", "high"].map(column);
      let value = show(y);
      if (y !== null && low !== null) {
        const [below, above] = [y - low, high - y];
        value += Math.abs(below - above) <= 1e-4 * Math.max(below, above) ? ` \u00b1 ${show(above, 3)}` : ` (${show(low)} to ${show(high)})`;
      } else if (y === null) value = `${show(low)} to ${show(high)}`;
      this.ring.setAttribute("cx", two(found.x));
      this.ring.setAttribute("cy", two(found.y));
      panel.group.append(this.ring);
      this.say([[layer.name, ""], [panel.spec.x.label || "x", show(x)], [panel.spec.y.label || "y", value]], found, panel);
    }

    // Writes lines of [name, value] beside a place of the drawing.
    say(lines, { x, y }, panel) {
      const area = this.root.querySelector(".drawing"), box = area.getBoundingClientRect();
      const point = new DOMPoint(x, y).matrixTransform(panel.group.getScreenCTM());
      this.readout.replaceChildren(...lines.map(([name, value]) => {
        const line = document.createElement("div");
        line.textContent = value === "" ? name : `${name} = ${value}`;
        return line;
      }));
      this.readout.hidden = false;
      const left = point.x - box.left, top = point.y - box.top, own = this.readout.getBoundingClientRect();
      const beside = left + own.width + 14 > box.width ? left - own.width - 12 : left + 12;
      this.readout.style.left = `${Math.max(0, Math.min(beside, box.width - own.width))}px`;
      this.readout.style.top = `${Math.max(0, top - own.height - 8)}px`;
    }

    clear() {
      this.readout.hidden = true;
      this.ring.remove();
      this.current = null;
    }

    look(event) {
      const under = this.under(event);
      if (!under) return this.clear();
      const reach = 24 / (under.panel.group.getScreenCTM().a || 1);
      const found = under.panel.nearest(under.x, under.y);
      if (found && found.distance <= reach) {
        this.current = found;
        return this.read(found);
      }
      const cell = under.panel.cell(under.x, under.y);
      if (!cell) return this.clear();
      this.ring.remove();
      const { x, y } = under.panel.spec;
      this.say([[x.label || "x", show(cell.x, 4)], [y.label || "y", show(cell.y, 4)], ["value", show(cell.value)]], under, under.panel);
    }

    // -- zoom and pan --

    pointer() {
      const svg = this.svg;
      let drag = null;
      svg.addEventListener("pointerdown", (event) => {
        const under = event.button === 0 && event.pointerType !== "touch" && !event.target.closest(".entry") && this.under(event);
        if (!under) return;
        event.preventDefault();
        this.root.querySelector(".drawing").focus({ preventScroll: true });
        drag = { ...under, pan: event.shiftKey && under.panel.zoomed, shown: { ...under.panel.shown } };
        svg.setPointerCapture(event.pointerId);
      });
      svg.addEventListener("pointermove", (event) => {
        if (!drag) return this.look(event);
        this.clear();
        const { panel } = drag, { left, top, right, bottom } = panel.frame;
        const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(panel.group.getScreenCTM().inverse());
        if (drag.pan) {
          const dx = ((drag.x - at.x) * (drag.shown.right - drag.shown.left)) / (right - left);
          const dy = ((drag.y - at.y) * (drag.shown.bottom - drag.shown.top)) / (bottom - top);
          const { shown } = drag;
          return panel.show({ left: shown.left + dx, right: shown.right + dx, top: shown.top + dy, bottom: shown.bottom + dy });
        }
        const bound = (value, low, high) => Math.min(Math.max(value, low), high);
        drag.to = { x: bound(at.x, left, right), y: bound(at.y, top, bottom) };
        drag.box ??= element("rect", { class: "selection", fill: "#0072b2", "fill-opacity": 0.12, stroke: "#0072b2", "stroke-width": 0.6 }, panel.group);
        const box = { x: Math.min(drag.x, drag.to.x), y: Math.min(drag.y, drag.to.y), width: Math.abs(drag.to.x - drag.x), height: Math.abs(drag.to.y - drag.y) };
        for (const [key, value] of Object.entries(box)) drag.box.setAttribute(key, two(value));
      });
      const finish = (zoom) => {
        if (!drag) return;
        const { panel, to, box } = drag;
        box?.remove();
        if (zoom && to && Math.abs(to.x - drag.x) > 4 && Math.abs(to.y - drag.y) > 4) {
          // From the zoomed drawing back to the whole.
          const back = (value, low, high, from, end) => from + ((value - low) / (high - low)) * (end - from);
          const { frame, shown } = panel;
          const x = (value) => back(value, frame.left, frame.right, shown.left, shown.right);
          const y = (value) => back(value, frame.top, frame.bottom, shown.top, shown.bottom);
          panel.show({ left: x(Math.min(drag.x, to.x)), right: x(Math.max(drag.x, to.x)), top: y(Math.min(drag.y, to.y)), bottom: y(Math.max(drag.y, to.y)) });
        }
        drag = null;
      };
      svg.addEventListener("pointerup", () => finish(true));
      svg.addEventListener("pointercancel", () => finish(false));
      svg.addEventListener("pointerleave", () => { if (!drag) this.clear(); });
      svg.addEventListener("dblclick", () => this.reset());
      // A tap reads out; swiping scrolls the page.
      svg.addEventListener("click", (event) => { if (!event.target.closest(".entry")) this.look(event); });
    }

    reset() {
      this.panels.filter((panel) => panel.zoomed).forEach((panel) => panel.reset());
      this.clear();
    }

    zoomChanged() {
      this.root.classList.toggle("zoomed", this.panels.some((panel) => panel.zoomed));
    }

    // -- keyboard --

    // Left and right step along a layer, up and down from layer to layer, + and - zoom about the point, Escape resets.
    keys() {
      this.root.querySelector(".drawing").addEventListener("keydown", (event) => {
        if (event.target.closest(".entry") && event.key !== "Escape") return;
        const layers = this.panels.flatMap((panel) => panel.readable().map((layer) => ({ panel, layer })));
        const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], Home: [-Infinity, 0], End: [Infinity, 0] };
        if (event.key === "Escape") return this.reset();
        if (event.key === "+" || event.key === "-") {
          const panel = this.current?.panel;
          if (!panel) return;
          const factor = event.key === "+" ? 0.5 : 2, { shown } = panel, point = this.current;
          const [x, y] = this.unzoomed(panel, point);
          const grow = (from, to, at) => [at - (at - from) * factor, at + (to - at) * factor];
          const [left, right] = grow(shown.left, shown.right, x), [top, bottom] = grow(shown.top, shown.bottom, y);
          panel.show({ left, right, top, bottom });
          return this.step(point.panel, point.layer, point.index);
        }
        if (!steps[event.key] || layers.length === 0) return;
        event.preventDefault();
        const [along, over] = steps[event.key];
        const place = layers.findIndex(({ panel, layer }) => this.current?.panel === panel && this.current?.layer === layer);
        if (place < 0) return this.step(layers[0].panel, layers[0].layer, 0);
        const next = layers[(place + over + layers.length) % layers.length];
        const last = this.column(next.layer.x).length - 1;
        // Another layer is entered at the same abscissa.
        const x = this.column(this.current.layer.x)[this.current.index];
        const same = over === 0 ? this.current.index : this.column(next.layer.x).reduce((best, value, i, all) => (Math.abs(value - x) < Math.abs(all[best] - x) ? i : best), 0);
        this.step(next.panel, next.layer, Math.min(Math.max(same + along, 0), last), along);
      });
    }

    unzoomed(panel, point) {
      return [panel.whole.x.place(this.column(point.layer.x)[point.index]), point.layer.y === undefined ? (panel.frame.top + panel.frame.bottom) / 2 : panel.whole.y.place(this.column(point.layer.y)[point.index])];
    }

    // Reads a point out, or the next one in this direction that has a place on the page.
    step(panel, layer, index, along = 1) {
      const length = this.column(layer.x).length, sign = along < 0 ? -1 : 1;
      for (let i = index; i >= 0 && i < length; i += sign) {
        const [x, y] = panel.at(layer, i);
        if (!panel.inside(x, y)) continue;
        this.current = { panel, layer, index: i, x, y };
        return this.read(this.current);
      }
    }

    // -- tools --

    rows() {
      const rows = [];
      for (const { spec, layers } of this.panels) {
        for (const layer of layers) {
          const column = (name) => (layer[name] === undefined ? [] : this.column(layer[name]));
          const [x, y, low, high] = ["x", "y", "low", "high"].map(column);
          for (let i = 0; i < Math.max(x.length, y.length); i++) rows.push([spec.name, layer.name, x[i], y[i], low[i], high[i]]);
          layer.rows?.forEach((row, j) => row.forEach((value, i) => rows.push([spec.name, `${layer.name} row ${j + 1} column ${i + 1}`, null, value])));
        }
      }
      return rows;
    }

    csv(separator) {
      const quote = (text) => (/[",\n\t]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
      const line = (cells) => cells.map((cell) => quote(typeof cell === "string" ? cell : raw(cell))).join(separator);
      return [["panel", "series", "x", "y", "low", "high"], ...this.rows()].map((row) => line([...row, "", ""].slice(0, 6))).join("\n") + "\n";
    }

    tools() {
      const act = (name, action) => this.root.querySelector(`[data-do="${name}"]`)?.addEventListener("click", action);
      const save = (text, type, ending) => {
        const link = document.createElement("a");
        link.href = URL.createObjectURL(new Blob([text], { type }));
        link.download = `${this.root.dataset.name}.${ending}`;
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 1000);
      };
      act("copy", async (event) => {
        const button = event.currentTarget, before = button.textContent;
        // Without a secure context (a file opened from disk in some browsers) there is no clipboard: select a text area instead.
        try { await navigator.clipboard.writeText(this.csv("\t")); } catch {
          const area = document.createElement("textarea");
          area.value = this.csv("\t");
          document.body.append(area);
          area.select();
          document.execCommand("copy");
          area.remove();
        }
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = before; }, 1500);
      });
      act("csv", () => save(this.csv(","), "text/csv", "csv"));
      act("svg", () => save(this.file, "image/svg+xml", "svg"));
      act("reset", () => this.reset());
      // The table has every point once it is opened; until then a few, which also stand there without this script.
      const details = this.root.querySelector("details.numbers");
      details?.addEventListener("toggle", () => {
        const body = details.querySelector("tbody"), several = details.querySelector("thead").querySelectorAll("th").length > 5;
        if (!details.open || body.dataset.full) return;
        body.dataset.full = "yes";
        body.replaceChildren(...this.rows().map((row) => {
          const line = document.createElement("tr");
          for (const cell of row.slice(several ? 0 : 1)) {
            const made = document.createElement("td");
            made.textContent = typeof cell === "string" ? cell : raw(cell);
            line.append(made);
          }
          return line;
        }));
      });
    }

    // -- narrow pages --

    // Panels side by side where they can be read, below each other where not.
    fit() {
      const room = this.root.querySelector(".drawing").clientWidth;
      const points = this.svg.viewBox.baseVal.width;
      this.width ??= points;
      this.height ??= this.svg.viewBox.baseVal.height;
      this.arrange(room > 0 && room < 1.1 * this.width && this.panels.filter((panel) => !panel.spec.inset).length > 1);
    }

    arrange(stacked) {
      if (stacked === this.stacked) return;
      this.stacked = stacked;
      this.clear();
      const panels = this.panels.filter((panel) => !panel.spec.inset);
      const entries = [...this.svg.querySelectorAll(":scope > .entry")], title = this.svg.querySelector(":scope > .heading");
      for (const group of [...panels.map((panel) => panel.group), ...entries, ...(title ? [title] : [])]) group.removeAttribute("transform");
      const background = this.svg.querySelector(":scope > rect");
      const size = (width, height) => {
        this.svg.setAttribute("viewBox", `0 0 ${two(width)} ${two(height)}`);
        background.setAttribute("width", two(width));
        background.setAttribute("height", two(height));
        this.svg.style.aspectRatio = `${two(width)} / ${two(height)}`;
      };
      if (!stacked) return size(this.width, this.height);
      const shift = (group, x, y) => group.setAttribute("transform", `translate(${two(x)} ${two(y)})`);
      const width = Math.max(...panels.map(({ spec }) => spec.outer[2] - spec.outer[0])) + 8;
      let top = 4;
      if (title) {
        const box = title.getBBox(), scale = Math.min(1, (width - 8) / box.width);
        title.setAttribute("transform", `translate(${two((width - scale * box.width) / 2 - scale * box.x)} ${two(top - scale * box.y)}) scale(${two(scale)})`);
        top += scale * box.height + 8;
      }
      for (const { spec, group } of panels) {
        const [left, upper, right, lower] = spec.outer;
        // Frames stand below each other: right ends in one line.
        shift(group, width - 4 - right, top - upper);
        top += lower - upper + 9;
      }
      // Legend entries flow as words do, each made smaller if it is wider than the page.
      let x = 4, line = 0;
      for (const entry of entries) {
        const box = entry.getBBox(), scale = Math.min(1, (width - 8) / box.width), wide = scale * box.width;
        if (x > 4 && x + wide > width - 4) { x = 4; top += line + 3; line = 0; }
        entry.setAttribute("transform", `translate(${two(x - scale * box.x)} ${two(top - scale * box.y)}) scale(${two(scale)})`);
        x += wide + 12;
        line = Math.max(line, scale * box.height);
      }
      size(width, top + line + 6);
    }
  }

  // Figures that come later: a page that replaces its drawings calls this for what it has put in.
  const enliven = (within) => within.querySelectorAll("figure.didact-figure:not(.alive)").forEach((root) => { root.didact = new Figure(root); });
  const all = (act) => document.querySelectorAll("figure.didact-figure.alive").forEach((root) => act(root.didact));
  window.addEventListener("beforeprint", () => all((figure) => figure.arrange(false)));
  window.addEventListener("afterprint", () => all((figure) => figure.fit()));
  window.didactFigures = { enliven };
  const start = () => enliven(document);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start); else start();
})();
