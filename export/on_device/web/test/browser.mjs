// Drives an exported page in headless Chromium:
//   node test/browser.mjs FOLDER CHROMIUM [SCREENSHOT.png] < sentences.json > found.json
// Serves FOLDER, translates the sentences by the page's own worker, types the first into the page, then gives it a text
// of the first three, points at its second sentence, gives it words that stay and a long sentence, gives the first two to the
// example of docs/browser.md, stops the server, loads the page again and types once more. What it saw is the JSON.
import { createServer } from "node:http";
import { readFile, stat } from "node:fs/promises";
import { extname, join, normalize } from "node:path";
import { text } from "node:stream/consumers";
import puppeteer from "puppeteer-core";

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".svg": "image/svg+xml", ".json": "application/json" };
const TIMEOUT_MS = 120_000;
const LONG = Array(20).fill("The dog sees the cat").join(", ") + "."; // longer than the model takes
const KEPT = "The dog is at https://a.de/x?b=1, 3.50 € {name}. Write to a@b.de 😀!\n12:30 – a_b.txt";
const DOCUMENTATION = await readFile(new URL("../../../../docs/browser.md", import.meta.url), "utf8");
const EXAMPLE = /```html\n([^]*?)```/.exec(DOCUMENTATION)[1]; // another page, beside the exported folder site/1
const [folder, chromium, screenshot] = process.argv.slice(2);
const sentences = JSON.parse(await text(process.stdin));

const server = createServer(async (request, response) => {
  const asked = normalize(new URL(request.url, "http://x").pathname).replace(/^\/site\/1/, "");
  if (asked === "/example.html") return response.writeHead(200, { "content-type": TYPES[".html"] }).end(EXAMPLE);
  const path = join(folder, asked.replace(/\/$/, "/index.html"));
  try {
    if (!(await stat(path)).isFile()) throw new Error("a folder");
    response.writeHead(200, { "content-type": TYPES[extname(path)] ?? "application/octet-stream" }).end(await readFile(path));
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const address = `http://127.0.0.1:${server.address().port}/`;

const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox"], timeout: TIMEOUT_MS, protocolTimeout: TIMEOUT_MS * 5 });
try {
  console.log(JSON.stringify(await look()));
} finally {
  await browser.close();
  server.closeAllConnections();
  server.close();
}

async function look() {
  const page = await browser.newPage();
  const requested = new Set();
  page.on("request", (request) => requested.add(new URL(request.url()).origin));
  await page.setViewport({ width: 960, height: 600 });
  await page.goto(address);
  const state = await ready(page);
  if (state !== "Ready.") return { state };
  const translations = await page.evaluate(translateAll, sentences);
  const typed = await type(page, sentences[0]);
  const shown = await page.evaluate(() => Object.fromEntries(["tokens", "speed", "memory", "model"].map((id) => [id, document.getElementById(id).textContent])));
  if (screenshot) await picture(page);
  const text = await give(page, `\t${sentences[0]}  ${sentences[1]}\n\n ${sentences[2]}\n- 1.5\n`);
  const marked = [await pointAt(page, "mirror"), await pointAt(page, "translation")];
  const kept = await give(page, KEPT);
  const divided = await give(page, LONG);
  const stateOfDivided = await page.$eval("#state", (element) => element.textContent);
  await page.setViewport({ width: 360, height: 640 });
  const fitsAPhone = await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth);
  const embedded = await embed(`${sentences[0]}  ${sentences[1]}`);
  server.closeAllConnections();
  server.close();
  await page.reload();
  const offlineState = await ready(page);
  const offline = offlineState === "Ready." ? await type(page, sentences[0]) : offlineState;
  return { state, translations, typed, text, marked, kept, divided, stateOfDivided, shown, fitsAPhone, embedded, offline, origins: [...requested].map((origin) => origin === new URL(address).origin ? "own" : origin) };
}

/** What the page says once it has loaded, or cannot. */
async function ready(page) {
  await page.waitForFunction(
    () => !document.getElementById("source").disabled || document.getElementById("state").classList.contains("wrong"),
    { timeout: TIMEOUT_MS },
  );
  return page.$eval("#state", (element) => element.textContent);
}

/** By the keyboard alone: the text field has the focus when the page is ready. */
async function type(page, sentence) {
  await page.keyboard.type(sentence);
  return translated(page, sentence);
}

/** The translation in the example's page, which has the elements `source` and `translation`. */
async function embed(text) {
  const page = await browser.newPage();
  await page.goto(`${address}example.html`);
  await page.waitForFunction(() => document.getElementById("source").onchange, { timeout: TIMEOUT_MS });
  await page.$eval(
    "#source",
    (element, given) => {
      element.value = given;
      element.dispatchEvent(new Event("change"));
    },
    text,
  );
  await page.waitForFunction(() => document.getElementById("translation").textContent, { timeout: TIMEOUT_MS });
  const found = await page.$eval("#translation", (element) => element.textContent);
  await page.close(); // the first page comes back to the foreground
  return found;
}

/** As if pasted over what is there. */
async function give(page, text) {
  await page.$eval("#translation", (element) => element.setAttribute("aria-busy", "true"));
  await page.$eval(
    "#source",
    (element, given) => {
      element.value = given;
      element.dispatchEvent(new Event("input"));
    },
    text,
  );
  return translated(page, text);
}

/** The sentences that are marked while the mouse points at the second one of a side. */
async function pointAt(page, side) {
  const [x, y] = await page.evaluate((id) => {
    const box = document.querySelectorAll(`#${id} .sentence`)[1].getClientRects()[0];
    return [box.x + box.width / 2, box.y + box.height / 2];
  }, side);
  await page.mouse.move(x, y);
  return page.$$eval(".chosen", (chosen) => chosen.map((one) => one.textContent));
}

/** The translation of what stands in the text field, once it is whole. */
async function translated(page, source) {
  await page.waitForFunction(
    (given) => document.getElementById("source").value === given && document.getElementById("translation").getAttribute("aria-busy") === "false",
    { timeout: TIMEOUT_MS },
    source,
  );
  return page.$eval("#translation", (element) => element.textContent);
}

async function picture(page) {
  for (const scheme of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await page.screenshot({ path: scheme === "light" ? screenshot : screenshot.replace(/\.png$/, "_dark.png") });
  }
}

/** In the page: the sentences one after the other, by another worker like the page's own. */
async function translateAll(sentences) {
  const worker = new Worker("worker.js");
  const found = [];
  for (const [request, line] of sentences.entries()) {
    const answer = new Promise((resolve) => {
      worker.onmessage = ({ data }) => data.request === request && resolve(data);
    });
    worker.postMessage({ line, request });
    const { text, ids, cut, error, tokens, seconds } = await answer;
    found.push({ text, ids, cut, error, tokens, seconds });
  }
  worker.terminate();
  return found;
}
