// A tokenizer whose ids are a list of their own: SentencePiece cuts a sentence, and each piece is looked up as a string.
// Models that were imported into tfformer have such a list. Knows no model.

const UNKNOWN_ID = 1;
const END_ID = 3; // the last of the special pieces, which have no text
const MAX_KNOWN = 20; // codes that a message lists
const BYTE = /^<0x([0-9A-F]{2})>$/;
const CODE = /^>>[^]*?<</; // >>fra<<, before a sentence that is to become French

export class ListedPieces {
  /**
   * `cutter` cuts a sentence into pieces; `pieces` has the piece of each id. Every sentence begins with the piece `prefix`,
   * if there is one, which has no text. `rewrites` are regular expressions with the text in their place, which come first.
   */
  constructor(cutter, { pieces, prefix, rewrites }) {
    this.cutter = cutter;
    this.pieces = pieces;
    this.prefix = prefix;
    this.rewrites = rewrites.map(([pattern, text]) => [new RegExp(pattern, "gu"), text]);
    this.ids = new Map(pieces.map((piece, id) => [piece, id]));
    this.codes = pieces.filter((piece) => /^>>.+<<$/.test(piece));
  }

  encodeIds(sentence) {
    for (const [pattern, text] of this.rewrites) sentence = sentence.replace(pattern, () => text);
    const code = (this.codes.length && sentence.match(CODE)?.[0]) || "";
    if (code && !this.ids.has(code)) {
      const known = this.codes.slice(0, MAX_KNOWN).join(", ");
      throw new Error(`the model has no target language ${code}; the known codes are ${known}`);
    }
    const pieces = this.cutter.encodePieces(sentence.slice(code.length));
    if (code) pieces.unshift(code);
    if (this.prefix && pieces.length) pieces.unshift(this.prefix);
    return pieces.map((piece) => this.ids.get(piece) ?? UNKNOWN_ID);
  }

  /** The text itself if it is a piece of the list. */
  encodePieces(text) {
    return this.ids.has(text) ? [text] : [];
  }

  /** A piece that stands for a byte is one; the others are text in which a blank is written as ▁. */
  decodeIds(ids) {
    const encoder = new TextEncoder();
    const bytes = ids
      .filter((id) => id > END_ID && this.pieces[id] !== this.prefix)
      .flatMap((id) => {
        const byte = this.pieces[id].match(BYTE);
        return byte ? [parseInt(byte[1], 16)] : [...encoder.encode(this.pieces[id].replaceAll("▁", " "))];
      });
    return new TextDecoder().decode(Uint8Array.from(bytes)).replace(/^ +| +$/g, "");
  }
}
