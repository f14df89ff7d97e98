// Keeps words as they are: addresses, numbers with units, placeholders, file names, emoji; as copies.py does for Python. A
// model that was trained with placeholders (⟦1⟧) gets one in place of each of these words. Knows no model.

export const PLACEHOLDERS = ["⟦1⟧", "⟦2⟧", "⟦3⟧", "⟦4⟧"]; // that a model may have learned to copy
const W = "[\\p{L}\\p{N}_]"; // Python's \w
const PART = "[\\p{L}\\p{N}_-]";
const SYMBOL = "⟦\\d+⟧";
const END = `(?!${W})`; // of a word, as Python's \b behind one
const GROUP = "\\([^\\s<>\"'()]*\\)|\\[[^\\s<>\"'\\[\\]]*\\]"; // brackets, as at the end of a page's address
const STOPS = "\\u3001-\\u3011\\uff01\\uff08\\uff09\\uff0c\\uff1a\\uff1b\\uff1f"; // of Chinese and Japanese
// Which no address without a scheme has either: dashes, quotes, and the writing of East Asia.
const OTHERS = `${STOPS}–—…“”„‘’«»\\u3040-\\u30ff\\u3400-\\u4dbf\\u4e00-\\u9fff\\uac00-\\ud7af`;
// Up to a letter or a group: the full stop behind it, or the bracket around it, is the sentence's.
const LAST = "[\\p{L}\\p{N}_/=&#-]";
const TAIL = `(?:${GROUP}|(?!${GROUP})[^\\s<>"'${STOPS}])*(?:${GROUP}|${LAST})`;
const NEAR_TAIL = `(?:${GROUP}|(?!${GROUP})[^\\s<>"'${OTHERS}])*(?:${GROUP}|(?![${OTHERS}])${LAST})`;
const SCHEME = "(?<![A-Za-z\\d+.-])[A-Za-z][A-Za-z\\d+.-]{1,30}";
const PAGE = `/(?:${TAIL})?`;
const URL = `${SCHEME}://${TAIL}|(?<!${W})[wW]{3}\\.${PART}+(?:\\.${PART}+)+(?:${PAGE})?`;
const PORT = `:\\d{2,5}${END}`;
const NEAR_PAGE = `/(?:${NEAR_TAIL})?`;
const HOST = `(?<!/)(?:localhost|(?:${PART}+\\.)+[a-z]{2,24})(?:${PORT}(?:${NEAR_PAGE})?|${NEAR_PAGE})`;
const LOCAL = "[\\p{L}\\p{N}_.+-]{1,64}";
const IRISH = `(?:'(?<=(?<!${W})[oO]')${LOCAL})?`; // as in o'neil@x.org; l' and d' are words of their own
const REPOSITORY = `(?::[\\p{L}\\p{N}_.~-]*/[\\p{L}\\p{N}_./~-]*${W})?`; // as of git@x.org:a/b.git
const E_MAIL = `(?<!\\+)${LOCAL}${IRISH}@${PART}+(?:\\.${PART}+)+${REPOSITORY}`;
const NOTE = `\\[\\^${PART}{1,60}\\]`; // the mark of a footnote
const WIDTH = "(?:\\d{1,4}|\\*)";
const CONVERSION = `(?:\\d{1,3}\\$)?[-+#0]{0,5}${WIDTH}?(?:\\.${WIDTH})?(?:(?:hh?|ll?|[qLjzt])?[sdifuxXeEgGcop]${END}|@)`;
const BRACES = "\\{ ?(?:[^{}\\s]{1,60}, ){0,3}[^{}\\s]{1,60}(?: [^{}\\s]{1,60})? ?\\}"; // of a few words
const DOUBLE_BRACES = "\\{\\{[^{}\\n]{1,100}\\}\\}|\\{%[^{}\\n]{1,100}%\\}";
const VARIABLE = `${DOUBLE_BRACES}|[#$%]?${BRACES}|%\\([\\p{L}\\p{N}_.]{1,60}\\)[sdif]|%${CONVERSION}`;
const FOLDER = `/(?:\\.{1,2}(?=/)|\\.?${PART}+(?:\\.${PART}+)*)`; // without a full stop behind it
const STEP = "[\\p{L}\\p{N}_$~-]+";
const ON_WINDOWS = `[A-Za-z]:(?:(?:\\\\${STEP}(?:\\.${STEP})*)+|(?:${FOLDER}){2,})`;
const USUAL = "pdf|docx?|xlsx?|pptx?|txt|csv|jpe?g|png|gif|svg|zip|mp[34]|html?|css|json|xml|py|js";
const ENDING = `(?:[a-z]{2}[a-z\\d]{0,2}|[chor]|${USUAL}|${USUAL.toUpperCase()})${END}`;
// As .gitignore and .config/x; any other word behind a full stop is a word.
const DOT_NAMES = `(?:env|profile|git${W}+|bash${W}*|${W}+rc|${W}+ignore)${END}|[a-z]${PART}*(?=[./]${W})`;
const HIDDEN = `(?<![^\\s(\\["'„“«»])\\.(?:${DOT_NAMES})(?:[./-]${PART}+)*`;
const BELOW = `(?<![\\p{L}\\p{N}_~.])(?:~|\\.{1,2})${FOLDER}`;
const PATH = `(?=[~./])(?:~?(?:\\.{1,2})?(?:${FOLDER}){2,}|${BELOW}|${HIDDEN})`;
const LONG_NAME = `(?:${PART}\\.)*${PART}{2,255}(?:\\.${PART}+)*\\.${ENDING}`;
const NAME = `(?<!/)/?(?:${PART}+/)*(?:${LONG_NAME}|${W}\\.(?:${USUAL})${END})`;
const SIZES = "[kcmµ]?m[²³]?|ft|[kmµ]?g|lbs?|oz|[kmcd]?l|[kMGT]?B|[kMGT]?bit|[kMG]?Hz|[kMG]?Wh?|[kM]?V|m?Ah";
const MEASURE = `${SIZES}|hp|min|ms|mph|px|pt|EUR|USD|GBP|CHF|(?:[ht]|(?<=\\s)s)(?!-)`; // no 1990s, no 5 t-shirts
const SHARE = `/(?:h|s²?|min|k?m[²³]?|k?g|l)${END}`; // of a compound unit, as km/h
const CURRENCY = "$¢-¥\\u20a0-\\u20cf";
const SYMBOLS = `[%‰](?![({]|${CONVERSION})|°[CF]?|[${CURRENCY}](?![\\d{])(?:${SHARE})?|x${END}`;
const UNIT = `(?:${SYMBOLS}|(?:${MEASURE})(?:${SHARE})?(?![\\p{L}\\p{N}_/]|['’]${W}))`;
const GAP = "[ \\xa0\\u202f]?"; // before a unit
const SIGN = `(?<![^\\s(\\["'„“«»])[-−+±#]`; // of a number, no dash between two words
const FRACTIONS = "¼-¾\\u2150-\\u215e";
const THOUSAND = "['’\\xa0\\u2009\\u202f]\\d{3}(?!\\d)";
const DIGITS = `\\d+(?:[.,:/–-]\\d+|${THOUSAND})*(?:[eE][-+−]?\\d+)?`;
const TIMES = `${GAP}[x×]${GAP}\\d+(?:[.,]\\d+)*`;
const MOMENT = "\\d{4}-\\d\\d-\\d\\dT\\d\\d(?::\\d\\d){1,2}(?:[.,]\\d+)?(?:Z|[-+−]\\d\\d:?\\d\\d)?"; // of ISO 8601
const PRICE = `[${CURRENCY}]${GAP}${DIGITS}(?:(?:[kKmMB]|bn|tn)${END})?(?:${SHARE})?`;
const AMOUNT = `(?:${DIGITS}(?:${GAP}[${FRACTIONS}]|(?:${TIMES})+)?|[${FRACTIONS}])(?:${GAP}${UNIT})?`;
const NUMBER = `(?<![\\p{L}\\p{N}_.,])(?:${SIGN})?(?:${PRICE}|(?:${MOMENT}|${AMOUNT})${END})`;
const VERSION = `(?<![\\p{L}\\p{N}_.])v\\d+(?:\\.\\d+)+(?:[-+][\\p{L}\\p{N}_.]*${W})?${END}`;
const BLOCKS = "\\u2300-\\u23ff\\u25a0-\\u27bf\\u2b00-\\u2bff\\u{1f000}-\\u{1faff}"; // of Unicode, with pictures
const PICTURES = `[${BLOCKS}\\u203c\\u2049\\u2139\\u24c2\\u3030\\u303d\\u3297\\u3299]`;
const TONES = "[\\ufe0e\\ufe0f\\u200d\\u{1f3fb}-\\u{1f3ff}\\u{e0020}-\\u{e007f}]";
const EMOJI = `(?:(?:[\\d#*]\\ufe0f?\\u20e3|[^\\s\\p{L}\\p{N}_]\\ufe0f|${PICTURES}|(?<!${W})\\u2122)${TONES}*)+`;
const SIGNS = [SYMBOL, EMOJI, VARIABLE, NOTE, PATH].join("|");
const NAMES = `(?<![.-])(?=${PART}*[@:./'+])(?:${HOST}|${E_MAIL}|${NAME})`;
const WORDS = [NAMES, ON_WINDOWS, VERSION, NUMBER].join("|"); // only where a word begins
const KINDS = [`(?![A-Za-z\\s])(?:${SIGNS})`, URL, `(?<!${W})(?:${WORDS})`]; // most places fail early
const KEPT = new RegExp(KINDS.join("|"), "gu");

const LETTER = /\p{L}/u;
const WORD = /[\p{L}\p{N}]/u;
const GLUE = /[\dA-Za-zÀ-ӿ]/; // of scripts that write spaces between words
const IS_SYMBOL = new RegExp(`^${SYMBOL}$`);
const IS_NUMBER = new RegExp(`^(?:${NUMBER})$`, "u");
const NO_DIGIT = new RegExp(`[^\\d${FRACTIONS}]`, "gu");
const LAST_STOP = /[.!?…:;]*$/;
const COVER = "~"; // no letter, no space, and no stop

const digits = (text) => text.replace(NO_DIGIT, "");
const escaped = (text) => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
const isGlue = (character) => GLUE.test(character ?? "");

/** The words of a text that stay. */
export function keptWords(text) {
  return [...text.matchAll(KEPT)].map(([word]) => word);
}

/** A text of the same length, without stops and spaces in words that stay. */
export function masked(text) {
  return text.replace(KEPT, (word) => (/^\d+$/.test(word) ? word : COVER.repeat(word.length)));
}

/** A sentence, and as `text` the same with placeholders for its first words, as many as the model has. */
export function marked(sentence, placeholders) {
  const words = [...sentence.matchAll(KEPT)].map((found) => ({ word: found[0], start: found.index, end: found.index + found[0].length }));
  const symbols = placeholders.filter((symbol) => !sentence.includes(symbol)).slice(0, words.length);
  let number = 0;
  const text = sentence.replace(KEPT, (word) => symbols[number++] ?? word);
  const hasText = LETTER.test(sentence.replace(KEPT, " "));
  return { sentence, text, words, symbols, hasText };
}

/** Whether a translation of the text lacks a placeholder; then that of the sentence as it is may be better. */
export function lacks({ symbols }, translation) {
  return symbols.some((symbol) => !translation.includes(symbol));
}

/** A translation of the text with all words that stay; that of the sentence as it is counts if it has more of them. */
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

/**
 * A translation with ⟦n⟧ for the word n, without other placeholders; and the numbers n. A number that is written otherwise,
 * such as 1.000 for 1,000, is the word too.
 */
function numbered(words, translation, symbols) {
  const names = words.map(({ word }, number) => symbols[number] ?? word);
  const places = new Map(); // of a name -> numbers
  for (const [number, name] of names.entries()) places.set(name, [...(places.get(name) ?? []), number]);
  const ofDigits = new Map(names.filter((name) => IS_NUMBER.test(name)).map((name) => [digits(name), name]));
  const numbers = new Set();
  const own = [...places.keys()].filter((name) => !symbols.includes(name)).sort((a, b) => b.length - a.length);
  const alone = `(?<!${GLUE.source})(?<!\\d[.,:/-])(?:${own.map(escaped).join("|")})(?!${GLUE.source}|[.,:/-]\\d)`;
  const kinds = [SYMBOL, ...(own.length ? [alone] : []), ...(ofDigits.size ? [NUMBER] : [])].join("|");
  const text = translation.replace(new RegExp(`( ?)(${kinds})`, "gu"), (found, space, name, place) => {
    const number = places.get(places.has(name) ? name : ofDigits.get(digits(name)))?.shift();
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
