// The text of which a manifest has the digest: its JSON without that digest, with sorted keys and Python's spaces. Strings and
// numbers stay as they are written, for Python's 1.0 would be JavaScript's 1.

const TOKENS = /"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g;
const OWN = '"manifest_digest"';

/** `text` is valid JSON. */
export function canonical(text) {
  const tokens = text.match(TOKENS);
  let place = 0;

  function value(leftOut) {
    const token = tokens[place++];
    if (token === "[") return `[${items("]", value).join(", ")}]`;
    if (token !== "{") return token;
    const members = items("}", member).filter(([key]) => key !== leftOut);
    members.sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${members.map(([key, written]) => `${key}: ${written}`).join(", ")}}`;
  }

  function member() {
    const key = tokens[place++];
    place++; // the colon
    return [key, value()];
  }

  function items(end, item) {
    const found = [];
    while (tokens[place] !== end) {
      found.push(item());
      if (tokens[place] === ",") place++;
    }
    place++;
    return found;
  }

  return value(OWN);
}
