// Divides a text into sentences and the rest, by the browser's own segmenter.

// Behind these the segmenter ends a sentence that goes on.
const TITLES = "Mr|Mrs|Ms|Messrs|Dr|Drs|Prof|Rev|Capt|Col|Gen|Lt|Sgt|St|Mt";
const OTHERS = "No|Nr|vs|etc|vol|fig|pp|lat|ca|bzw|usw";
const ABBREVIATION = new RegExp(`(?:^|[\\s(])(?:\\p{L}|${TITLES}|${OTHERS})\\.\\s+$`, "u");
const LETTER = /\p{L}/u;

/** The stretches of a text: {text, isSentence}. Joined they are the text; a sentence has no whitespace at its ends. */
export function stretches(text, language) {
  const segmenter = new Intl.Segmenter(known(language), { granularity: "sentence" });
  return text.split(/([\t\r\n]+)/).flatMap((line) => joined(segmenter, line).flatMap(withoutEdges));
}

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
  const words = segment.trim();
  const isSentence = LETTER.test(words);
  if (!isSentence) return [{ text: segment, isSentence }];
  const begin = segment.indexOf(words);
  const parts = [segment.slice(0, begin), words, segment.slice(begin + words.length)];
  return parts.map((text, place) => ({ text, isSentence: place === 1 })).filter(({ text }) => text);
}
