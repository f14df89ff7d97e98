// Keeps protected words, such as addresses, file names and emoji, as they are. A model that was trained with placeholders (⟦1⟧)
// gets a placeholder for each protected word. Knows no model.
import { PROTECTED_WORDS } from "./protected_words.js";

export const PLACEHOLDERS = ["⟦1⟧", "⟦2⟧", "⟦3⟧", "⟦4⟧"]; // that a model may have learned to copy
const PROTECTED = new RegExp(PROTECTED_WORDS, "gu");
const SYMBOL = "⟦\\d+⟧";
const LETTER = /\p{L}/u;
const WORD = /[\p{L}\p{N}]/u;
const GLUE = /[\dA-Za-zÀ-ӿ]/; // of scripts that write spaces between words
const IS_SYMBOL = new RegExp(`^${SYMBOL}$`);
const LAST_STOP = /[.!?…:;]*$/;
const COVER = "~"; // no letter, no space, and no stop

const escaped = (text) => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
const isGlue = (character) => GLUE.test(character ?? "");

/** The protected words of a text. */
export function protectedWords(text) {
  return [...text.matchAll(PROTECTED)].map(([word]) => word);
}

/** A text of the same length, without stops and spaces in protected words. */
export function masked(text) {
  return text.replace(PROTECTED, (word) => COVER.repeat(word.length));
}

/** A sentence, and as `text` the same with placeholders for its first protected words, as many as the model has. */
export function marked(sentence, placeholders) {
  const words = [...sentence.matchAll(PROTECTED)].map((found) => ({ word: found[0], start: found.index, end: found.index + found[0].length }));
  const symbols = placeholders.filter((symbol) => !sentence.includes(symbol)).slice(0, words.length);
  let number = 0;
  const text = sentence.replace(PROTECTED, (word) => symbols[number++] ?? word);
  const hasText = LETTER.test(sentence.replace(PROTECTED, " "));
  return { sentence, text, words, symbols, hasText };
}

/** Whether a translation of the text lacks a placeholder; the translation of the sentence itself may be better then. */
export function lacks({ symbols }, translation) {
  return symbols.some((symbol) => !translation.includes(symbol));
}

/** A translation of the text with all protected words; `ofSentence` is taken if it contains more of them. */
export function filled(sentence, translation, ofSentence) {
  let best = { translation, ...numbered(sentence.words, translation, sentence.symbols) };
  if (ofSentence !== undefined) {
    const plain = numbered(sentence.words, ofSentence, []);
    if (plain.numbers.size > best.numbers.size) best = { translation: ofSentence, ...plain };
  }
  if (best.translation.match(SYMBOL) && !WORD.test(best.text)) return sentence.sentence;
  let text = best.translation.startsWith(" ") ? best.text : best.text.replace(/^ +/, "");
  for (const number of sentence.words.keys()) {
    if (!best.numbers.has(number)) text = withSymbol(text, sentence, number);
  }
  return withWords(text, sentence);
}

/** A translation with ⟦n⟧ for the word n, without other placeholders; and the numbers n. */
function numbered(words, translation, symbols) {
  const names = words.map(({ word }, number) => symbols[number] ?? word);
  const places = new Map(); // of a name -> numbers
  for (const [number, name] of names.entries()) places.set(name, [...(places.get(name) ?? []), number]);
  const numbers = new Set();
  const own = [...places.keys()].filter((name) => !symbols.includes(name)).sort((a, b) => b.length - a.length);
  const alone = `(?<!${GLUE.source})(?<!\\d[.,:/-])(?:${own.map(escaped).join("|")})(?!${GLUE.source}|[.,:/-]\\d)`;
  const kinds = own.length ? `${SYMBOL}|${alone}` : SYMBOL;
  const text = translation.replace(new RegExp(`( ?)(${kinds})`, "gu"), (found, space, name, place) => {
    const number = places.get(name)?.shift();
    if (number !== undefined) {
      numbers.add(number);
      return `${space}⟦${number}⟧`;
    }
    if (!IS_SYMBOL.test(name)) return found;
    return WORD.test(translation[place + found.length] ?? "") ? space : "";
  });
  return { text, numbers };
}

/** Puts a word at its share of the translation; a full stop stays behind it. */
function withSymbol(text, { sentence, words }, number) {
  const { start, end } = words[number];
  const isBeforeStop = end < sentence.length && /^[.!?…:;]*$/.test(sentence.slice(end));
  const stop = isBeforeStop ? LAST_STOP.exec(text)[0] : "";
  const parts = text.slice(0, text.length - stop.length).split(" ");
  const share = [...sentence.slice(0, start)].length / [...sentence].length; // of characters
  parts.splice(Math.floor(share * parts.length + 0.5), 0, `⟦${number}⟧`);
  return parts.join(" ").replace(/^ +| +$/g, "") + stop;
}

/** Puts the words in place; none touches another word that it does not touch before. */
function withWords(text, { sentence, words }) {
  const parts = text.split(/⟦(\d+)⟧/);
  let result = parts[0];
  for (let place = 1; place < parts.length; place += 2) {
    const { word, start, end } = words[parts[place]];
    const [before, behind] = [parts[place - 1], parts[place + 1]];
    const isApart =
      before || place === 1
        ? isGlue(before.at(-1)) && !isGlue(sentence[start - 1])
        : words[parts[place - 2]].end !== start;
    result += (isApart ? " " : "") + word + (isGlue(behind[0]) && !isGlue(sentence[end]) ? " " : "") + behind;
  }
  return result;
}
