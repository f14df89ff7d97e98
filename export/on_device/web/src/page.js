// The page: shows a text and its translation by the translator. Knows no model.
import { fill, fit, markBothSides } from "./sides.js";
import { load } from "./translator.js";

const DEBOUNCE_MS = 120;
const byId = (id) => document.getElementById(id);
const [source, mirror, translation] = ["source", "mirror", "translation"].map(byId);
const [state, loading, copy] = ["state", "loading", "copy"].map(byId);

let translator;
let showing = new AbortController(); // ends what is being translated
let timer;

if (window.top !== window.self) {
  document.body.replaceChildren("This page does not work inside another page."); // a <meta> cannot forbid the frame
  throw new Error("framed");
}
start().catch((error) => say(error.message, true));

async function start() {
  await keepFiles();
  translator = await load(undefined, (share) => (loading.value = share));
  source.addEventListener("input", () => {
    showing.abort();
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
  describe(translator.model);
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

function describe(model) {
  loading.hidden = true;
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
  showing.abort();
  showing = new AbortController();
  const { signal } = showing;
  translation.setAttribute("aria-busy", "true");
  try {
    const onSentence = (parts, found) => {
      tell(found);
      put(parts);
    };
    const parts = await translator.stretches(source.value, { language: source.lang, onSentence, signal });
    put(parts);
    const sentences = parts.filter(({ isSentence }) => isSentence);
    const cut = sentences.filter((sentence) => sentence.cut).length;
    say(cut ? `${cut} of ${sentences.length} sentences were too long and were cut.` : "");
  } catch (error) {
    if (signal.aborted) return; // something newer has been typed
    say(error.message, true);
  }
  translation.setAttribute("aria-busy", "false");
  copy.disabled = !translation.textContent;
}

/** Both sides again, with the translations that there are. */
function put(parts) {
  fill(mirror, parts);
  fill(
    translation,
    parts.map(({ translation, isSentence }) => ({ text: translation, isSentence })),
  );
  fit(source);
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
