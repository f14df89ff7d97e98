// Loads the exported model and translates a sentence at a time, beside the page, which stays responsive meanwhile.
import { getGlobalLiteRt, loadAndCompile, loadLiteRt, Tensor } from "@litertjs/core";
import { SentencePieceProcessor } from "@sctg/sentencepiece-js";
import { PLACEHOLDERS } from "./copies.js";
import { ListedPieces } from "./listed_pieces.js";
import { canonical } from "./manifest_digest.js";

const END_ID = 3;
const FOLDER = "model/";
const WEBASSEMBLY = "wasm/";

const ready = load().catch((error) => {
  self.postMessage({ error: error.message });
  throw error;
});

self.onmessage = async ({ data: { line, request } }) => {
  try {
    self.postMessage({ request, ...(await translate(await ready, line)) });
  } catch (error) {
    self.postMessage({ request, error: error.message });
  }
};

async function load() {
  const manifest = await readManifest();
  const names = Object.keys(manifest.tokenizers).sort(); // source before target, or one for both
  const source = await tokenizer(manifest, names[0]);
  const target = names.length > 1 ? await tokenizer(manifest, names[1]) : source;
  const bytes = await file(manifest, "model.tflite");
  self.Module = { locateFile: (name) => WEBASSEMBLY + name }; // in a worker it would look beside the worker's script
  await loadLiteRt(WEBASSEMBLY);
  const model = await loadAndCompile(bytes, { accelerator: "wasm" });
  const [languages, examples] = [texts(manifest.languages), texts(manifest.examples)];
  const placeholders = PLACEHOLDERS.filter((symbol) => [source, target].every((one) => one.encodePieces(symbol).includes(symbol)));
  const tags = texts(manifest.tags);
  const { tag, quantize } = manifest;
  self.postMessage({ model: { languages, examples, placeholders, tag, tags, quantize, bytes: bytes.length, memory: memory() } });
  return { model, source, target, widths: widths(manifest), longest: manifest.decoding.max_length };
}

async function readManifest() {
  const path = `${FOLDER}manifest.json`;
  const response = await fetch(path).catch(() => ({ ok: false, status: "no network" }));
  if (!response.ok) throw new Error(`${path} is missing (${response.status}); serve the whole exported folder`);
  const text = await response.text();
  const manifest = parsed(text);
  const parts = ["tokenizers", "files", "digests", "signatures", "decoding"];
  const isWhole = parts.every((name) => manifest?.[name]) && manifest.decoding.max_length >= 2;
  if (manifest?.format !== "litert" || !manifest.static || !isWhole) {
    await forget(path);
    throw new Error(`${path} does not describe a static LiteRT model; export with --format web`);
  }
  if (!(await isExported(new TextEncoder().encode(canonical(text)), manifest.manifest_digest))) {
    await forget(path);
    throw new Error(`${path} is not the file that was exported; copy it again`);
  }
  return manifest;
}

/** The value of a JSON text; null if it is none. */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** A list of strings, as it is; an empty one in place of anything else. */
function texts(value) {
  return Array.isArray(value) && value.every((text) => typeof text === "string") ? value : [];
}

/** The file's bytes, which must be those that were exported; tells the page how much of the model is there. */
async function file(manifest, name) {
  const response = await fetch(FOLDER + name).catch(() => ({ ok: false, status: "no network" }));
  if (!response.ok) throw new Error(`${FOLDER}${name} is missing (${response.status}); serve the whole exported folder`);
  const size = manifest.files[name];
  const parts = [];
  let loaded = 0;
  for (const reader = response.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    loaded += value.length;
    self.postMessage({ loaded: Math.min(1, loaded / size) });
  }
  const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
  if (bytes.length !== size || !(await isExported(bytes, manifest.digests[name]))) {
    await forget(FOLDER + name);
    throw new Error(`${FOLDER}${name} is not the file that was exported (${bytes.length} bytes, exported ${size}); copy it again`);
  }
  return bytes;
}

/** What the service worker keeps of this file is not what the page needs: the next visit asks the server again. */
async function forget(path) {
  if (!self.caches) return;
  for (let attempt = 0; attempt < 10; attempt++) {
    const names = await caches.keys();
    const deleted = await Promise.all(names.map(async (name) => (await caches.open(name)).delete(path)));
    if (deleted.includes(true)) return;
    await new Promise((resolve) => setTimeout(resolve, 100)); // it may be keeping the file just now
  }
}

/** Whether the SHA-256 is that of the manifest; a page over plain http cannot compute one and goes by the size. */
async function isExported(bytes, digest) {
  if (!crypto.subtle) return true;
  const found = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(found, (byte) => byte.toString(16).padStart(2, "0")).join("") === digest;
}

async function tokenizer(manifest, name) {
  const bytes = await file(manifest, name);
  let text = "";
  for (let first = 0; first < bytes.length; first += 8192) text += String.fromCharCode(...bytes.subarray(first, first + 8192));
  const processor = new SentencePieceProcessor();
  await processor.loadFromB64StringModel(btoa(text));
  const list = name.replace(/model$/, "pieces.json");
  if (!(list in manifest.digests)) return processor;
  return new ListedPieces(processor, JSON.parse(new TextDecoder().decode(await file(manifest, list))));
}

/** Narrowest first: how many ids a signature takes, and its name. */
function widths(manifest) {
  return Object.entries(manifest.signatures)
    .filter(([name]) => /^translate(_\d+)?$/.test(name))
    .map(([name, { inputs }]) => ({ name, width: inputs.ids.shape[1] }))
    .sort((a, b) => a.width - b.width);
}

async function translate({ model, source, target, widths, longest }, line) {
  const start = performance.now();
  const pieces = source.encodeIds(line);
  if (!pieces.length) return { text: "", ids: [], tokens: 0, seconds: 0, cut: false, memory: memory() };
  const kept = Math.min(pieces.length, longest - 1);
  const { name, width } = widths.find(({ width }) => kept < width) ?? widths.at(-1);
  const ids = Int32Array.from({ length: width }, (_, place) => pieces[place] ?? END_ID);
  const inputs = { ids: new Tensor(ids, [1, width]), lengths: new Tensor(Int32Array.of(kept), [1]) };
  const outputs = await model.run(name, inputs);
  const length = (await outputs.lengths.data())[0];
  const found = Array.from((await outputs.ids.data()).subarray(0, length));
  for (const tensor of [...Object.values(inputs), ...Object.values(outputs)]) tensor.delete();
  const text = target.decodeIds(found.filter((id) => id !== END_ID));
  const seconds = (performance.now() - start) / 1000;
  return { text, ids: found, tokens: length, seconds, cut: kept < pieces.length, memory: memory() };
}

/** What LiteRT occupies: the model, its scratch space and the runtime. SentencePiece's is not in it. */
function memory() {
  return getGlobalLiteRt().liteRtWasm.HEAPU8.length;
}
