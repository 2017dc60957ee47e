// The explorer in a browser: every promise of its guide, looked at as a user would. Run by .ci/browser, which gives
// DIDACT (the program), PLAYWRIGHT (the folder with playwright-core), CHROMIUM and WORK (a folder to write to).
import { spawn, execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";

const { DIDACT, PLAYWRIGHT, CHROMIUM = "/usr/bin/chromium", WORK, PICTURES, LATENCY, PAGE } = process.env;
const { chromium } = createRequire(path.join(PLAYWRIGHT, "package.json"))(PLAYWRIGHT);

const start = (...more) => new Promise((resolve, reject) => {
  const server = spawn(DIDACT, ["explore", "--no-open", "--out", path.join(WORK, "runs"), ...more], { stdio: ["ignore", "pipe", "inherit"] });
  server.stdout.once("data", (line) => resolve({ server, url: String(line).trim() }));
  server.once("exit", () => reject(new Error("the explorer ended")));
});

const tests = [];
const test = (name, body) => tests.push({ name, body });
// Settled: the last request has answered, with its simulations.
const settled = async (page) => {
  await page.waitForFunction(() => document.body.dataset.view === "explore" && !document.getElementById("see").hasAttribute("aria-busy") && document.getElementById("figures").childElementCount > 0, null, { timeout: 60_000 });
};
const open = async (context, url, hash) => {
  const page = await context.newPage();
  page.faults = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) page.faults.push(message.text()); });
  page.on("pageerror", (error) => page.faults.push(`${error.message}\n${error.stack}`));
  page.on("request", (request) => { if (!request.url().startsWith(url) && !/^(data|blob):/.test(request.url())) page.faults.push(`asks for ${request.url()}`); });
  // While the page is worked on: its files from a folder, in place of those that the program carries.
  if (PAGE) for (const file of fs.readdirSync(PAGE).filter((name) => name !== "index.html")) await page.route(`${url}${file}`, (route) => route.fulfill({ path: path.join(PAGE, file) }));
  await page.goto(url + hash);
  return page;
};
// Moves a slider as a hand does, in steps.
const slide = async (page, key, fractions) => {
  const slider = page.locator(`[data-slider="${key}"]`);
  await slider.scrollIntoViewIfNeeded();
  const box = await slider.boundingBox();
  const at = (fraction) => [box.x + 8 + (box.width - 16) * fraction, box.y + box.height / 2];
  const place = await slider.evaluate((it) => Number(it.value) / Number(it.max));
  await page.mouse.move(...at(place));
  await page.mouse.down();
  for (const fraction of fractions) await page.mouse.move(...at(fraction), { steps: 4 });
  await page.mouse.up();
};
const curve = (page) => page.locator("#figures svg [data-layer] path").first().getAttribute("d");
const value = (page, name) => page.locator(`[data-number="${name}"] .value`).first().textContent();

test("a slider changes the curve, and the numbers are those of didact run on the exported text", async ({ context, url }) => {
  const page = await open(context, url, "#card=examples/first-figure");
  await settled(page);
  const before = await curve(page), predicted = await value(page, "predicted time");
  await slide(page, "training.learning-rate", [0.52, 0.56, 0.6]);
  await settled(page);
  assert.notEqual(await curve(page), before);
  assert.notEqual(await value(page, "predicted time"), predicted);
  assert.match(await page.textContent("#status-text"), /^Complete/);
  await page.click("#tab-text");
  const text = await page.inputValue("#text");
  assert.match(text, /learning-rate = [\d.]+/);
  assert.equal(/learning-rate = 1\.0$/m.test(text), false);
  const file = path.join(WORK, "exported.toml");
  fs.writeFileSync(file, text);
  const run = JSON.parse(execFileSync(DIDACT, ["run", file, "--json", "--out", path.join(WORK, "cli")], { encoding: "utf8" }));
  const printed = execFileSync(DIDACT, ["run", file, "--out", path.join(WORK, "cli")], { encoding: "utf8" });
  for (const name of ["predicted time", "simulated time"]) {
    const shown = await value(page, name);
    assert.ok(printed.includes(`${name} = ${shown}`), `${name}: ${shown} in\n${printed}`);
  }
  assert.equal((await page.locator(".claim .verdict").count()), run.claims.length);
  // The drawing is the file of the folder, too.
  const svg = fs.readFileSync(path.join(run.folder, "specialisation.svg"), "utf8");
  const drawn = await page.evaluate(() => document.querySelector("figure.didact-figure").didact.file);
  const paths = (text) => [...text.matchAll(/ d="([^"]+)"/g)].map((found) => found[1]).filter((d) => d.length > 60);
  assert.deepEqual(new Set(paths(drawn)), new Set(paths(svg)));
  assert.deepEqual(page.faults, []);
});

test("a drawing that is changed in place while a knob turns is the one that is drawn anew", async ({ context, url }) => {
  for (const id of ["examples/first-figure", "power-law-spectra/fig04-18-plateau", "quadratic-networks/extra-escape"]) {
    const page = await open(context, url, `#card=${id}`);
    await page.waitForSelector("#figures figure.alive");
    const slider = page.locator("[data-slider='training.learning-rate']");
    await slider.scrollIntoViewIfNeeded();
    const box = await slider.boundingBox(), place = await slider.evaluate((it) => Number(it.value) / Number(it.max));
    const to = (fraction) => page.mouse.move(box.x + 8 + (box.width - 16) * fraction, box.y + box.height / 2);
    await to(place);
    await page.mouse.down();
    let changed = 0;
    for (let i = 1; i <= 12; i++) {
      const frames = await page.evaluate(() => window.didactLatency.length);
      await to(place + 0.004 * i);
      await page.waitForFunction((before) => window.didactLatency.length > before, frames, { timeout: 5000 }).catch(() => {});
      const [same, kept] = await page.evaluate(() => {
        const drawing = document.querySelector("#figures .drawing > svg"), template = document.createElement("template");
        const kept = drawing === window.lastDrawing;
        window.lastDrawing = drawing;
        if (!drawing.tags) return [true, false];
        template.innerHTML = `<${drawing.tags.join("<")}`;
        return [drawing.isEqualNode(template.content.firstElementChild), kept];
      });
      assert.ok(same, `${id}, frame ${i}`);
      changed += kept;
    }
    assert.ok(changed >= 3, `${id}: only ${changed} frames were changed in place`);
    await page.mouse.up();
    assert.deepEqual(page.faults, [], id);
    await page.close();
  }
});

test("form and text are always in step, and a mistake is shown at its field and its line", async ({ context, url }) => {
  const page = await open(context, url, "#card=examples/first-figure");
  await settled(page);
  await page.fill("[id='key-model.students']", "3");
  await page.press("[id='key-model.students']", "Enter");
  // Three students do not fit a 2 x 2 start: an error at the field of the start, with its line.
  await page.waitForSelector("#problem:not([hidden])");
  await page.click("#tab-text");
  assert.match(await page.inputValue("#text"), /students = 3/);
  const good = (await page.inputValue("#text")).replace("students = 3", "students = 2");
  await page.fill("#text", good.replace("learning-rate", "learning-rat"));
  await page.waitForFunction(() => document.getElementById("problem").textContent.includes("did you mean `learning-rate`?"));
  assert.equal(await page.textContent("#gutter .bad"), String(good.split("\n").findIndex((line) => line.startsWith("learning-rate")) + 1));
  await page.fill("#text", good.replace("learning-rate = 1.0", "learning-rate = -1.0"));
  await page.waitForFunction(() => document.getElementById("problem").textContent.length > 5 && !document.getElementById("problem").textContent.includes("did you mean"));
  await page.click("#tab-form");
  assert.equal(await page.locator("[data-key='training.learning-rate'] .wrong").count(), 1);
  await page.click("#tab-text");
  await page.fill("#text", good.replace("learning-rate = 1.0", "learning-rate = 0.7"));
  await page.waitForSelector("#problem", { state: "hidden" });
  await settled(page);
  await page.click("#tab-form");
  assert.equal(await page.inputValue("[id='key-training.learning-rate']"), "0.7");
  await page.fill("#search", "noise");
  assert.ok(await page.locator(".field:visible").count() < 12);
  assert.deepEqual(page.faults, []);
});

test("a reload and a shared link restore the state", async ({ context, url }) => {
  const page = await open(context, url, "#card=examples/first-figure");
  await settled(page);
  await page.fill("[id='key-training.learning-rate']", "0.6");
  await page.press("[id='key-training.learning-rate']", "Enter");
  await settled(page);
  await page.click("[data-act=pin]");
  await settled(page);
  await page.fill("[id='key-training.learning-rate']", "0.8");
  await page.press("[id='key-training.learning-rate']", "Enter");
  await settled(page);
  await page.waitForFunction(() => location.hash.includes("training.learning-rate=0.8") && location.hash.includes("pin="));
  const [text, time, drawing] = [await page.inputValue("#text"), await value(page, "predicted time"), await page.locator("#figures svg path").count()];
  await page.reload();
  await settled(page);
  assert.equal(await page.inputValue("#text"), text);
  assert.equal(await value(page, "predicted time"), time);
  const other = await open(context, url, new URL(page.url()).hash);
  await settled(other);
  assert.equal(await other.inputValue("#text"), text);
  assert.equal(await other.locator("#figures svg path").count(), drawing, "the pinned curve is there");
  assert.ok(await other.locator("#figures svg").first().evaluate((svg) => svg.innerHTML.includes("#8a8a8a")), "in grey");
  assert.deepEqual([...page.faults, ...other.faults], []);
});

test("two tabs do not disturb each other, and a closed one ends its work", async ({ context, url }) => {
  const long = "#card=committee/extra-plateau";
  const first = await open(context, url, long), second = await open(context, url, "#card=examples/sweep");
  await settled(second);
  assert.match(await second.textContent("#status-text"), /^Complete/);
  await first.waitForSelector("#figures figure");
  let ended = false;
  first.on("requestfinished", () => {});
  first.on("requestfailed", (request) => { if (request.url().endsWith("compute")) ended = true; });
  const busy = await first.evaluate(() => document.getElementById("see").hasAttribute("aria-busy"));
  assert.ok(busy, "its simulations stream");
  await first.evaluate(() => document.getElementById("stop").click());
  await first.waitForFunction(() => document.getElementById("status-text").textContent === "Stopped.");
  assert.ok(ended, "the stream is closed");
  await first.close();
  await second.fill("[id='key-record.replicas']", "8");
  await second.press("[id='key-record.replicas']", "Enter");
  await settled(second);
  assert.match(await second.textContent("#status-text"), /^Complete/);
});

test("numbers are explained by an equation, a reference and a derivation", async ({ context, url }) => {
  const page = await open(context, url, "#card=examples/first-figure");
  await settled(page);
  await page.click("[data-number='escape time from the plateau'] button");
  await page.waitForSelector("#dialog[open] .equation svg");
  assert.match(await page.textContent("#dialog-body"), /Saad/);
  const link = page.locator("#dialog-body a[href^=derivations]").first();
  const [derivation] = await Promise.all([context.waitForEvent("page"), link.click()]);
  await derivation.waitForLoadState();
  assert.match(await derivation.title(), /committee machines/);
  assert.ok(await derivation.locator(".equation svg").count() > 50);
  await page.keyboard.press("Escape");
  await page.click("[data-number='simulated time'] button");
  await page.waitForFunction(() => document.querySelectorAll("#dialog .explained").length === 2);
  assert.deepEqual(page.faults, []);
});

test("copy, save and a run on disk give the same description", async ({ context, url }) => {
  const page = await open(context, url, "#card=examples/sweep");
  await settled(page);
  await page.click("[data-act=toml]");
  const text = await page.inputValue("#text");
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), text);
  await page.click("[data-act=python]");
  assert.ok((await page.evaluate(() => navigator.clipboard.readText())).includes(`from_toml(r'''\n${text}''')`));
  await page.click("[data-act=save]");
  await page.waitForFunction(() => document.getElementById("toast").textContent.startsWith("Saved: "));
  const saved = (await page.textContent("#toast")).slice("Saved: ".length);
  assert.equal(fs.readFileSync(saved, "utf8"), text);
  await page.click("[data-act=run]");
  await page.click("#dialog button.primary");
  await page.waitForSelector("#report-link", { timeout: 60_000 });
  const [report] = await Promise.all([context.waitForEvent("page"), page.click("#report-link")]);
  await report.waitForLoadState();
  assert.match(await report.textContent("h1"), /Learning rate sweep/);
  assert.ok(fs.existsSync(path.join(await page.textContent("#dialog code"), "provenance.json")));
  assert.deepEqual(page.faults, []);
});

test("the keyboard reaches everything", async ({ context, url }) => {
  const page = await open(context, url, "#card=examples/first-figure");
  await settled(page);
  const before = await curve(page);
  await page.focus("[data-slider='training.learning-rate']");
  for (let i = 0; i < 30; i++) await page.keyboard.press("ArrowRight");
  await settled(page);
  await page.waitForFunction((old) => document.querySelector("#figures svg [data-layer] path")?.getAttribute("d") !== old, before);
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.id), "search");
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("g");
  await page.waitForSelector("body[data-view=gallery]");
  await page.focus("[data-card='examples/scan']");
  await page.keyboard.press("Enter");
  await page.waitForSelector("body[data-view=explore]");
  await settled(page);
  assert.equal(await page.textContent("#title"), "Escape time against width");
  // A figure is read out with arrow keys.
  await page.focus("#figures .drawing");
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.locator("#figures .readout:visible").count(), 1);
  assert.deepEqual(page.faults, []);
});

test("every card opens without a fault", async ({ context, url }) => {
  const gallery = await (await context.request.get(`${url}gallery`)).json();
  const page = await open(context, url, "");
  await page.waitForSelector(".card");
  assert.equal(await page.locator(".card").count(), gallery.cards.length);
  for (const { id, title } of gallery.cards) {
    await page.evaluate((id) => { location.hash = `#card=${id}`; }, id);
    await page.waitForFunction((title) => document.getElementById("title").textContent === title, title, { timeout: 90_000 });
    // Theory of most is there at once. Some take longer; what matters is that they begin.
    await page.waitForFunction(() => document.getElementById("figures").childElementCount > 0, null, { timeout: 2000 }).catch(() => {});
    assert.ok(await page.evaluate(() => document.getElementById("figures").childElementCount > 0 || document.getElementById("see").hasAttribute("aria-busy")), id);
    assert.equal(await page.locator("#problem:visible").count(), 0, `${id}: ${await page.textContent("#problem")}`);
    assert.deepEqual(page.faults, [], id);
  }
});

// Times from the event of a slider to the frame that shows its curve, for the table of docs/performance.md.
test("theory follows the hand on the ten starting cards", async ({ context, url }) => {
  const gallery = await (await context.request.get(`${url}gallery`)).json();
  const rows = [];
  for (const id of gallery.starting) {
    const page = await open(context, url, `#card=${id}`);
    // Simulations may still stream in: a knob that turns ends them.
    await page.waitForSelector("#figures figure.alive");
    const sliders = await page.locator("[data-slider]").evaluateAll((all) => all.map((it) => it.dataset.slider));
    const key = ["training.learning-rate", "scan.0.inputs.eta", "model.mu", "data.spectrum.beta"].find((name) => sliders.includes(name)) ?? sliders[0];
    if (!key) { rows.push({ id, key: "none", times: [] }); await page.close(); continue; }
    await page.locator(`[data-slider="${key}"]`).evaluate((it) => { for (let d = it.closest("details"); d; d = d.parentElement.closest("details")) d.open = true; });
    await page.evaluate(() => { window.didactLatency.length = 0; });
    const middle = await page.locator(`[data-slider="${key}"]`).evaluate((it) => Number(it.value) / Number(it.max));
    await slide(page, key, Array.from({ length: 24 }, (_, i) => Math.min(0.98, Math.max(0.02, middle + 0.06 * Math.sin(i / 3)))));
    await page.waitForTimeout(200);
    rows.push({ id, key, times: await page.evaluate(() => window.didactLatency) });
    assert.deepEqual(page.faults, [], id);
    await page.close();
  }
  const quantile = (list, q) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(q * list.length))];
  // Where the time goes: waiting for the answer before, the server, the way there and back, the page's own script, the frame.
  const parts = {
    waits: (it) => it.sent,
    server: (it) => 1000 * (it.server.plan + it.server.compute + it.server.draw),
    way: (it) => it.answered - it.sent - 1000 * (it.server.plan + it.server.compute + it.server.draw),
    script: (it) => it.drawn - it.answered,
    frame: (it) => it.milliseconds - it.drawn,
  };
  const lines = rows.map(({ id, key, times }) => {
    if (!times.length) return `| \`${id}\` | none | | | | | | | | |`;
    const medians = Object.values(parts).map((part) => quantile(times.map(part), 0.5).toFixed(0));
    const whole = [0.5, 0.95].map((q) => quantile(times.map((it) => it.milliseconds), q).toFixed(0));
    return `| \`${id}\` | \`${key}\` | ${[times.length, ...medians, ...whole].join(" | ")} |`;
  });
  const table = ["| card | slider | frames | waits | server | there and back | script | frame | input to paint, median | 95 % |", "|---|---|---|---|---|---|---|---|---|---|", ...lines].join("\n");
  console.log(table);
  if (LATENCY) fs.writeFileSync(LATENCY, `${table}\n`);
  for (const { id, times } of rows) assert.ok(times.length >= 3, `${id}: frames were drawn while the slider moved`);
});

// A screenshot as WebP, a quarter of its size: the browser itself can write that.
const save = async (context, png, file) => {
  const blank = await context.newPage();
  const data = await blank.evaluate(async (base64) => {
    const image = new Image();
    image.src = `data:image/png;base64,${base64}`;
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
    canvas.getContext("2d").drawImage(image, 0, 0);
    return canvas.toDataURL("image/webp", 0.85).split(",")[1];
  }, png.toString("base64"));
  fs.writeFileSync(file, Buffer.from(data, "base64"));
};

test("pictures at 1280 and 420 pixels, light and dark", async ({ browser, url }) => {
  const folder = PICTURES ?? path.join(WORK, "pictures");
  fs.mkdirSync(folder, { recursive: true });
  for (const [name, width, height, colorScheme, hash] of [
    ["explorer-gallery", 1280, 860, "light", ""],
    ["explorer", 1280, 860, "light", "#card=examples/first-figure&training.learning-rate=0.7&pin=" + encodeURIComponent(JSON.stringify({ set: {}, unset: [] }))],
    ["explorer-dark", 1280, 860, "dark", "#card=lora/fig01-linear"],
    ["explorer-narrow", 420, 860, "light", "#card=examples/first-figure"],
    ["explorer-error", 1280, 860, "light", "#card=examples/first-figure"],
    ["explorer-explain", 1280, 860, "light", "#card=examples/first-figure"],
  ]) {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme });
    const page = await open(context, url, hash);
    if (hash) { await settled(page); await page.waitForTimeout(300); } else await page.waitForSelector(".card img");
    if (name.endsWith("error")) {
      await page.click("#tab-text");
      await page.fill("#text", (await page.inputValue("#text")).replace("learning-rate", "learning-rat"));
      await page.waitForSelector("#problem:not([hidden])");
    }
    if (name.endsWith("explain")) {
      await page.click("[data-number='escape time from the plateau'] button");
      await page.waitForSelector("#dialog[open] .equation svg");
    }
    // No part of the page is wider than the window.
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${name}: it scrolls sideways`);
    await page.waitForTimeout(150);
    await save(context, await page.screenshot(), path.join(folder, `${name}.webp`));
    assert.deepEqual(page.faults, [], name);
    await context.close();
  }
});

const { server, url } = await start();
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
let failed = 0;
const only = process.argv[2];
for (const { name, body } of tests.filter((it) => !only || it.name.includes(only))) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, permissions: ["clipboard-read", "clipboard-write"] });
  const began = Date.now();
  try {
    await body({ browser, context, url });
    console.log(`ok    ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed++;
    console.log(`FAILS ${name}\n${error.stack}`);
  }
  await context.close();
}
await browser.close();
server.removeAllListeners("exit");
server.kill("SIGINT");
process.exitCode = failed ? 1 : 0;
