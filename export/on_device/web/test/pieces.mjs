// Cuts sentences as the page does:  node test/pieces.mjs tokenizer.model < sentences.json > pieces.json
import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { SentencePieceProcessor } from "@sctg/sentencepiece-js";

const processor = new SentencePieceProcessor();
await processor.loadFromB64StringModel(await readFile(process.argv[2], "base64"));
const sentences = JSON.parse(await text(process.stdin));
console.log(JSON.stringify(sentences.map((sentence) => processor.encodePieces(sentence))));
