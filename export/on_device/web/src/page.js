// The page: sends the sentences of a text to the worker and shows what comes back. Knows no model.
import { filled, lacks, marked } from "./copies.js";
import { halves, stretches } from "./sentences.js";
import { fill, fit, markBothSides } from "./sides.js";

const DEBOUNCE_MS = 120;
const byId = (id) => document.getElementById(id);
const [source, mirror, translation] = ["source", "mirror", "translation"].map(byId);
const [state, loading, copy] = ["state", "loading", "copy"].map(byId);

const known = new Map(); // sentence -> its translation
const waiting = new Map(); // number of a request -> what to do with its answer
let worker;
let placeholders = []; // of the model's vocabulary
let requests = 0;
let timer;

if (window.top !== window.self) {
  document.body.replaceChildren("This page does not work inside another page."); // a <meta> cannot forbid the frame
  throw new Error("framed");
}
start().catch((error) => say(error.message, true));

async function start() {
  await keepFiles();
  worker = new Worker("worker.js");
  worker.onmessage = ({ data }) => (data.request === undefined ? onState(data) : waiting.get(data.request)?.(data));
  worker.onerror = (event) => say(event.message || "the page's program cannot be loaded; reload the page", true);
  source.addEventListener("input", () => {
    requests++; // what is being translated is no longer wanted
    translation.setAttribute("aria-busy", "true");
    fill(mirror, [{ text: source.value }]); // no sentence is marked until it is known
    fit(source);
    clearTimeout(timer);
    timer = setTimeout(show, DEBOUNCE_MS);
  });
  markBothSides(source, mirror, translation);
  window.addEventListener("resize", () => fit(source));
  copy.addEventListener("click", async () => {
    const copied = navigator.clipboard?.writeText(translation.textContent) ?? Promise.reject();
    await copied.then(
      () => say("Copied."),
      () => say("The browser does not let this page copy; it needs https or localhost.", true),
    );
  });
}

/** Wait until a first service worker sees this page's requests; without one (plain http) the page needs the network. */
async function keepFiles() {
  if (!navigator.serviceWorker) return;
  const registration = await navigator.serviceWorker.register("service_worker.js").catch(() => null);
  if (!registration || registration.active || navigator.serviceWorker.controller) return;
  const first = registration.installing ?? registration.waiting;
  if (!first) return; // it could not keep the files
  await new Promise((resolve) => {
    navigator.serviceWorker.addEventListener("controllerchange", resolve, { once: true });
    first.addEventListener("statechange", () => first.state === "redundant" && resolve());
  });
}

function onState({ error, loaded, model }) {
  if (error) return say(error, true);
  if (loaded !== undefined) {
    loading.value = loaded;
    return;
  }
  loading.hidden = true;
  placeholders = model.placeholders;
  source.disabled = false;
  source.focus();
  const [from, to] = model.languages.map(languageName);
  if (from && to) {
    byId("languages").textContent = `${from} → ${to}`;
    document.title = `${from} → ${to}, on this device`;
    byId("source-language").textContent = from;
    byId("target-language").textContent = to;
    [source.lang, translation.lang] = model.languages;
  }
  byId("examples").replaceChildren(...model.examples.map(chip));
  byId("model").textContent = `${model.quantize === "none" ? "float32" : model.quantize}, ${megabytes(model.bytes)}`;
  byId("memory").textContent = megabytes(model.memory);
  navigator.serviceWorker?.controller?.postMessage("ready");
  say("Ready.");
  if (source.value) show();
}

/** In English; what is no code of a language is its own name. */
function languageName(code) {
  try {
    return new Intl.DisplayNames(["en"], { type: "language" }).of(code);
  } catch {
    return code;
  }
}

/** A button that translates an example. */
function chip(sentence) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = sentence;
  button.addEventListener("click", () => {
    source.value = sentence;
    show();
  });
  return button;
}

async function show() {
  const parts = stretches(source.value, source.lang);
  const sentences = parts.filter(({ isSentence }) => isSentence).map(({ text }) => text);
  const request = ++requests;
  translation.setAttribute("aria-busy", "true");
  for (const sentence of new Set(sentences)) {
    if (known.has(sentence)) continue;
    const found = await translateWhole(sentence, request);
    if (found.error) {
      translation.setAttribute("aria-busy", "false");
      return say(found.error, true);
    }
    known.set(sentence, found);
    if (request !== requests) return; // something newer has been typed
    tell(found);
    put(parts);
  }
  put(parts);
  const cut = sentences.filter((sentence) => known.get(sentence).cut).length;
  say(cut ? `${cut} of ${sentences.length} sentences were too long and were cut.` : "");
  translation.setAttribute("aria-busy", "false");
  copy.disabled = !translation.textContent;
}

/** Both sides again, with the translations that there are. */
function put(parts) {
  fill(mirror, parts);
  fill(
    translation,
    parts.map(({ text, isSentence }) => ({ text: isSentence ? (known.get(text)?.text ?? "") : text, isSentence })),
  );
  fit(source);
}

/** With the words that stay; one that is longer than the model takes is divided, as often as needed. */
async function translateWhole(sentence, request) {
  const kept = marked(sentence, placeholders);
  if (!kept.hasText) return { text: sentence, tokens: 0, seconds: 0, cut: false };
  const found = await translate(kept.text, request);
  if (!found.cut || sentence.length < 2 || request !== requests) return withWords(kept, found, request);
  const [first, second] = halves(sentence);
  const space = /\s*$/.exec(first)[0];
  const before = await translateWhole(first.trimEnd(), request);
  const behind = await translateWhole(second, request);
  const { error = before.error, memory } = behind;
  return {
    error,
    memory,
    text: before.text + space + behind.text,
    tokens: before.tokens + behind.tokens,
    seconds: before.seconds + behind.seconds,
    cut: before.cut || behind.cut,
  };
}

/** Where the model has lost a placeholder, it translates the sentence as it is too. */
async function withWords(kept, found, request) {
  if (found.error || request !== requests) return found;
  const again = lacks(kept, found.text) ? await translate(kept.sentence, request) : {};
  return { ...found, error: again.error, text: filled(kept, found.text, again.text) };
}

function translate(line, request) {
  return new Promise((resolve) => {
    waiting.set(request, (found) => {
      waiting.delete(request);
      resolve(found);
    });
    worker.postMessage({ line, request });
  });
}

function tell({ tokens, seconds, memory }) {
  byId("tokens").textContent = tokens;
  byId("speed").textContent = tokens ? Math.round(tokens / seconds) : "–";
  if (memory) byId("memory").textContent = megabytes(memory);
}

function say(message, isWrong = false) {
  state.textContent = message;
  state.classList.toggle("wrong", isWrong);
  if (isWrong) loading.hidden = true;
}

const megabytes = (bytes) => `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
