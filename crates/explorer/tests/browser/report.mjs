// Reports in a browser: what a page promises, looked at as a reader would, without network. Run by .ci/browser, which gives
// DIDACT (the program), PLAYWRIGHT (the folder with playwright-core), CHROMIUM and WORK (a folder to write to). RUNS names a folder of
// finished runs with the page of the paper, in place of making one.
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const { DIDACT, PLAYWRIGHT, CHROMIUM = "/usr/bin/chromium", WORK, RUNS, PAPER = "fluctuations" } = process.env;
const { chromium } = createRequire(path.join(PLAYWRIGHT, "package.json"))(PLAYWRIGHT);
const LARGEST = 300_000;

const runs = RUNS ?? path.join(WORK, "reports");
if (!RUNS) execFileSync(DIDACT, ["reproduce", PAPER, "--quick", "--out", runs], { stdio: ["ignore", "ignore", "inherit"] });
const index = path.join(runs, `${PAPER}.html`);
const linked = [...fs.readFileSync(index, "utf8").matchAll(/href="\.\/([^"]+\/report\.html)"/g)].map((found) => path.join(runs, decodeURIComponent(found[1])));
const reports = [...new Set(linked)];
const folder = new URL(`../../../../papers/${PAPER}/`, import.meta.url);
const sources = fs.readdirSync(folder).filter((name) => name.endsWith(".toml")).map((name) => fs.readFileSync(new URL(name, folder), "utf8"));

const tests = [];
const test = (name, body) => tests.push({ name, body });

// A page from disk; whatever it asks for beyond its folder, and whatever it complains of, is a fault.
const open = async (context, file) => {
  const page = await context.newPage();
  page.faults = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) page.faults.push(message.text()); });
  page.on("pageerror", (error) => page.faults.push(error.message));
  page.on("request", (request) => { if (!/^(file|data|blob):/.test(request.url())) page.faults.push(`asks for ${request.url()}`); });
  await page.goto(pathToFileURL(file).href);
  return page;
};
const figures = (page) => page.locator("figure.didact-figure");

// The points of a figure that can be read out: panel, series, values, and where they are in the window.
const points = (figure, most) => figure.evaluate((root, most) => {
  const found = [], it = root.didact;
  for (const panel of it.panels) {
    for (const layer of panel.readable().filter((layer) => layer.y !== undefined)) {
      const xs = it.column(layer.x), ys = it.column(layer.y);
      const inside = xs.map((_, i) => i).filter((i) => panel.inside(...panel.at(layer, i)));
      for (let n = 0; n < Math.min(most, inside.length); n++) {
        const i = inside[Math.floor(((n + 0.5) * inside.length) / Math.min(most, inside.length))];
        const [x, y] = panel.at(layer, i), place = new DOMPoint(x, y).matrixTransform(panel.group.getScreenCTM());
        found.push({ panel: panel.spec.name, left: place.x, top: place.y });
      }
    }
  }
  return found;
}, most);

const number = (text) => Number(text.replace(/\u2212/g, "-").replace(/\s/g, ""));
// Equal as far as the shorter of the two texts goes.
const agree = (shown, exact) => Math.abs(shown - exact) <= 1e-3 * Math.abs(exact) + 1e-300;

test("hovering over a point reads out a row of the table", async ({ context }) => {
  for (const file of reports) {
    const page = await open(context, file);
    for (const figure of await figures(page).all()) {
      await figure.scrollIntoViewIfNeeded();
      await figure.locator("details.numbers > summary").click();
      const rows = await figure.locator("details.numbers tbody tr").evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
      assert.ok(rows.length > 0, `${file}: an empty table`);
      await figure.locator(".drawing").scrollIntoViewIfNeeded();
      const places = await points(figure, 2);
      assert.ok(places.length > 0, `${file}: nothing to read out`);
      for (const { left, top } of places) {
        if (top < 2 || top > page.viewportSize().height - 2) continue;
        await page.mouse.move(left, top);
        const readout = figure.locator(".readout");
        await readout.waitFor({ state: "visible" });
        const current = await figure.evaluate((root) => {
          const { panel, layer, index } = root.didact.current;
          return { panel: panel.spec.name, series: layer.name, x: root.didact.column(layer.x)[index], y: root.didact.column(layer.y ?? layer.low)[index] };
        });
        const row = rows.find((cells) => {
          const [y, x, series] = [cells.at(-3), cells.at(-4), cells.at(-5)];
          return series === current.series && agree(number(x), current.x) && (y === "" || agree(number(y), current.y));
        });
        assert.ok(row, `${file}: no row for ${JSON.stringify(current)}`);
        const text = await readout.textContent();
        const told = [...text.matchAll(/[-\u2212]?\d+(?:\.\d+)?(?:e[-+\u2212]?\d+)?/g)].map((found) => number(found[0]));
        assert.ok(told.some((value) => agree(value, current.x)), `${file}: "${text}" does not tell x = ${current.x}`);
        if (row.at(-3) !== "") assert.ok(told.some((value) => agree(value, current.y)), `${file}: "${text}" does not tell y = ${current.y}`);
      }
    }
    assert.deepEqual(page.faults, []);
    await page.close();
  }
});

test("every entry of a legend switches its series off and on, by mouse and by keyboard", async ({ context }) => {
  for (const file of reports) {
    const page = await open(context, file);
    const entries = page.locator("figure.didact-figure .entry");
    const hidden = () => page.evaluate(() => [...document.querySelectorAll("[data-layer]")].filter((group) => group.style.display === "none").length);
    for (let i = 0; i < (await entries.count()); i++) {
      const entry = entries.nth(i);
      assert.notEqual(await entry.getAttribute("aria-label"), "");
      assert.equal(await hidden(), 0);
      await entry.click();
      assert.equal(await entry.getAttribute("aria-pressed"), "false");
      assert.ok((await hidden()) > 0, `${file}: entry ${i} hides nothing`);
      await entry.press("Enter");
      assert.equal(await entry.getAttribute("aria-pressed"), "true");
      assert.equal(await hidden(), 0);
    }
    assert.deepEqual(page.faults, []);
    await page.close();
  }
});

test("a page is small, fits its window, and says in words and numbers what it shows", async ({ context, width }) => {
  for (const file of reports) {
    assert.ok(fs.statSync(file).size < LARGEST, `${file}: ${fs.statSync(file).size} bytes`);
    const page = await open(context, file);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${file} is wider than ${width}`);
    const title = (await page.title()).trim();
    const own = sources.find((text) => text.includes(`title = "${title}"`));
    // A description without a quick size has one size, and nothing to say about it.
    if (own === undefined || /^\[quick/m.test(own)) assert.ok(await page.getByText("--quick").first().isVisible(), `${file} does not say that it is of a quick run`);
    for (const figure of await figures(page).all()) {
      const words = await figure.locator(".drawing").getAttribute("aria-label");
      const caption = await figure.locator("figcaption").count();
      assert.ok(words.length > 20 && caption === 1, `${file}: "${words}"`);
      assert.ok((await figure.locator("table tbody tr").count()) > 0);
      // No two labels of a narrow page lie on each other: panels stand below each other, in their own heights.
      const boxes = await figure.evaluate((root) => root.didact.panels.filter((panel) => !panel.spec.inset).map((panel) => { const box = panel.group.getBoundingClientRect(); return [box.left, box.top, box.right, box.bottom]; }));
      for (const [i, a] of boxes.entries()) for (const b of boxes.slice(0, i)) assert.ok(a[0] >= b[2] - 1 || b[0] >= a[2] - 1 || a[1] >= b[3] - 1 || b[1] >= a[3] - 1, `${file}: panels overlap`);
    }
    assert.deepEqual(page.faults, []);
    await page.close();
  }
});

test("it can be read in the dark and on paper", async ({ context }) => {
  const page = await open(context, reports[0]);
  const light = (colour) => { const [r, g, b] = colour.match(/[\d.]+/g).map(Number); return (0.3 * r + 0.6 * g + 0.1 * b) / 255; };
  const contrast = async () => {
    const colours = await page.evaluate(() => ["color", "backgroundColor"].map((name) => getComputedStyle(document.body)[name]));
    return colours.map(light);
  };
  const [ink, paper] = await contrast();
  assert.ok(paper - ink > 0.6, `${ink} on ${paper}`);
  await page.emulateMedia({ colorScheme: "dark" });
  const [bright, dark] = await contrast();
  assert.ok(bright - dark > 0.5, `${bright} on ${dark}`);
  await page.emulateMedia({ colorScheme: "light", media: "print" });
  assert.ok(await page.locator(".drawing > svg").first().isVisible());
  assert.equal(await page.locator(".tools").first().isVisible(), false);
  if (page.viewportSize().width > 1000) assert.ok((await page.pdf({ format: "A4" })).length > 10_000);
  assert.deepEqual(page.faults, []);
  await page.close();
});

test("the page of the paper leads to every report and back to nothing that is missing", async ({ context }) => {
  const page = await open(context, index);
  assert.ok(reports.length > 0 && reports.every((file) => fs.existsSync(file)));
  const links = await page.locator("a[href]").evaluateAll((links) => links.map((link) => link.href).filter((href) => href.startsWith("file:")));
  for (const link of links) assert.ok(fs.existsSync(new URL(link.split("#")[0])), link);
  const pictures = await page.locator("img, svg").count();
  assert.ok(pictures >= reports.length, `${pictures} pictures for ${reports.length} figures`);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
  assert.deepEqual(page.faults, []);
  await page.close();
});

const wanted = process.argv[2] ?? "";
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
let failed = 0;
for (const width of [1280, 420]) {
  for (const { name, body } of tests.filter((t) => t.name.includes(wanted))) {
    const context = await browser.newContext({ viewport: { width, height: 900 }, offline: true });
    try {
      await body({ context, width });
      console.log(`ok    ${width} px: ${name}`);
    } catch (error) {
      failed++;
      console.log(`FAILS ${width} px: ${name}\n${error.stack}`);
    }
    await context.close();
  }
}
await browser.close();
process.exit(failed ? 1 : 0);
