// Divides a text into sentences and the rest, by the browser's own segmenter. Words that stay are never divided.
import { masked } from "./copies.js";

// Behind these the segmenter ends a sentence that goes on.
const TITLES = "Mr|Mrs|Ms|Messrs|Dr|Drs|Prof|Rev|Capt|Col|Gen|Lt|Sgt|St|Mt";
const OTHERS = "No|Nr|vs|etc|vol|fig|pp|lat|ca|bzw|usw";
const ABBREVIATION = new RegExp(`(?:^|[\\s(])(?:\\p{L}|${TITLES}|${OTHERS})\\.\\s+$`, "u");
const MARKER = /^\s*(?:(?:[-*+•‣◦·–—>#]+|\d{1,3}[.)]|\(?[a-z]\)|\[[ xX]\])\s+)+/; // of a list, a quotation
const LETTER = /\p{L}/u;
const LINE_ENDS = /([\t-\r\x1c-\x1e\x85\u2028\u2029]+)/; // and ends of columns
// Whitespace, and characters without width: of breaks, joins and directions.
const EDGE = "\\s\\x1c-\\x1f\\x85\\xad\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u2064\\u2066-\\u2069\\ufeff";
const BEGIN = new RegExp(`[^${EDGE}]|$`); // of what can be seen
const BEHIND = new RegExp(`(?<![${EDGE}])[${EDGE}]*$`);

/** The stretches of a text: {text, isSentence}. Joined they are the text; a sentence has nothing invisible at its ends. */
export function stretches(text, language) {
  const segmenter = new Intl.Segmenter(known(language), { granularity: "sentence" });
  let end = 0;
  return masked(text)
    .split(LINE_ENDS)
    .flatMap((line) => {
      const marker = MARKER.exec(line)?.[0] ?? "";
      const sentences = joined(segmenter, line.slice(marker.length));
      return [...(marker ? [{ text: marker, isSentence: false }] : []), ...sentences.flatMap(withoutEdges)];
    })
    .map(({ text: covered, isSentence }) => ({ text: text.slice(end, (end += covered.length)), isSentence }));
}

/** The tag that a text begins with, with the space after it, or ""; and the text without it. */
export function tagged(text, tags) {
  const begin = tags.map((tag) => `${tag} `).find((begin) => text.startsWith(begin)) ?? "";
  return [begin, text.slice(begin.length)];
}

/** A sentence that is too long in two, cut at a comma or the like near its middle, else at a space. */
export function halves(sentence) {
  const half = Math.floor(sentence.length / 2);
  const covered = masked(sentence);
  for (const end of [/[,;:)\]–—，；：、]\s*/g, /\s+/g]) {
    const places = [...covered.matchAll(end)].map((found) => found.index + found[0].length);
    const near = places.filter((place) => Math.abs(place - half) <= half / 2);
    if (near.length) return cutAt(sentence, near.reduce((a, b) => (Math.abs(b - half) < Math.abs(a - half) ? b : a)));
  }
  const end = half + /^~*/.exec(covered.slice(half))[0].length; // of a word that stays, if it is one
  const start = covered.slice(0, half).replace(/~+$/, "").length;
  return cutAt(sentence, end < sentence.length ? end : start || half);
}

const cutAt = (text, place) => [text.slice(0, place), text.slice(place)];

/** The language if it is one that the segmenter takes; otherwise the browser's. */
function known(language) {
  try {
    return Intl.Segmenter.supportedLocalesOf(language);
  } catch {
    return [];
  }
}

/** The sentences of a line, with the whitespace behind them. */
function joined(segmenter, line) {
  const sentences = [];
  for (const { segment } of segmenter.segment(line)) {
    if (sentences.length && ABBREVIATION.test(sentences.at(-1))) sentences.push(sentences.pop() + segment);
    else sentences.push(segment);
  }
  return sentences;
}

function withoutEdges(segment) {
  const [begin, end] = [segment.search(BEGIN), segment.search(BEHIND)];
  const words = segment.slice(begin, end);
  const isSentence = LETTER.test(words);
  if (!isSentence) return [{ text: segment, isSentence }];
  const parts = [segment.slice(0, begin), words, segment.slice(end)];
  return parts.map((text, place) => ({ text, isSentence: place === 1 })).filter(({ text }) => text);
}
