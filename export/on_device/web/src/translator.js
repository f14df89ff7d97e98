// Translates texts with an exported model, in this page and in others (docs/browser.md has an example). A worker runs the model,
// so that a page stays responsive.
import { filled, lacks, marked } from "./copies.js";
import { halves, stretches, tagged } from "./sentences.js";

/**
 * Loads the export in the folder `url`, by default this module's own; it must have the page's origin. `onProgress` gets the
 * share of each file that has arrived.
 */
export function load(url = new URL(".", import.meta.url), onProgress = () => {}) {
  const folder = new URL(url, document.baseURI).href.replace(/\/?$/, "/");
  const worker = new Worker(`${folder}worker.js`);
  return new Promise((resolve, reject) => {
    worker.onerror = ({ message }) => reject(new Error(message || `${folder}worker.js cannot be loaded; reload the page`));
    worker.onmessage = ({ data: { error, loaded, model } }) => {
      if (error) reject(new Error(error));
      else if (model) resolve(new Translator(worker, model));
      else onProgress(loaded);
    };
  });
}

class Translator {
  #worker;
  #waiting = new Map(); // the number of a request -> what its answer goes to
  #known = new Map(); // a sentence -> its translation
  #requests = 0;

  /** `model` describes the export: its languages, examples, placeholders, tag, tags, quantize, bytes, and its memory. */
  constructor(worker, model) {
    this.model = model;
    this.#worker = worker;
    worker.onmessage = ({ data: { request, error, ...found } }) => {
      const { resolve, reject } = this.#waiting.get(request);
      this.#waiting.delete(request);
      if (error) reject(new Error(error));
      else resolve(found);
    };
    worker.onerror = ({ message }) => {
      for (const { reject } of this.#waiting.values()) reject(new Error(message));
      this.#waiting.clear();
    };
  }

  /** The translation of a text of any length, with the white space between its sentences. */
  async translate(text) {
    const parts = await this.stretches(text);
    return parts.map(({ translation }) => translation).join("");
  }

  /**
   * The stretches of a text: {text, isSentence, translation, cut}. `onSentence` gets them after each new sentence, with what
   * was found last: {tokens, seconds, memory}. An AbortSignal ends the work at the next sentence.
   */
  async stretches(text, { language = this.model.languages[0], onSentence = () => {}, signal } = {}) {
    const [written, words] = tagged(text, this.model.tags);
    const tag = written || (this.model.tag ? `${this.model.tag} ` : "");
    const parts = stretches(words, language);
    const translated = () =>
      [
        ...(written ? [{ text: written, isSentence: false, translation: "" }] : []),
        ...parts.map((part) =>
          part.isSentence ? { ...part, translation: "", ...this.#known.get(tag + part.text) } : { ...part, translation: part.text },
        ),
      ];
    for (const sentence of new Set(parts.filter(({ isSentence }) => isSentence).map(({ text }) => text))) {
      if (this.#known.has(tag + sentence)) continue;
      const found = await this.#whole(sentence, tag, signal);
      this.#known.set(tag + sentence, { translation: found.text, cut: found.cut });
      signal?.throwIfAborted();
      onSentence(translated(), found);
    }
    return translated();
  }

  /** With the words that stay; a sentence that is longer than the model takes is divided, as often as needed. */
  async #whole(sentence, tag, signal) {
    const kept = marked(sentence, this.model.placeholders);
    if (!kept.hasText) return { text: sentence, tokens: 0, seconds: 0, cut: false };
    const found = await this.#ask(tag + kept.text, signal);
    if (!found.cut || sentence.length < 2) return this.#withWords(kept, found, tag, signal);
    const [first, second] = halves(sentence);
    const space = /\s*$/.exec(first)[0];
    const before = await this.#whole(first.trimEnd(), tag, signal);
    const behind = await this.#whole(second, tag, signal);
    return {
      memory: behind.memory,
      text: before.text + space + behind.text,
      tokens: before.tokens + behind.tokens,
      seconds: before.seconds + behind.seconds,
      cut: before.cut || behind.cut,
    };
  }

  /** Where the model has lost a placeholder, it translates the sentence as it is too. */
  async #withWords(kept, found, tag, signal) {
    const again = lacks(kept, found.text) ? await this.#ask(tag + kept.sentence, signal) : {};
    return { ...found, text: filled(kept, found.text, again.text) };
  }

  /** One sentence by the model itself. */
  #ask(line, signal) {
    signal?.throwIfAborted();
    const request = ++this.#requests;
    this.#worker.postMessage({ line, request });
    return new Promise((resolve, reject) => this.#waiting.set(request, { resolve, reject }));
  }
}
