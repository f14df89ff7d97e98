// The two sides of the page: shows a text and its translation, and marks the sentence that is pointed at on both.

/** One side as stretches {text, isSentence}: text as text, never as markup; a sentence as an element with its number. */
export function fill(place, stretches) {
  const nodes = stretches.map(({ text, isSentence }, number) => {
    if (!isSentence) return text;
    const sentence = document.createElement("span");
    sentence.className = "sentence";
    sentence.dataset.number = number;
    sentence.textContent = text;
    return sentence;
  });
  place.replaceChildren(...nodes);
}

/** Marks on both sides; the text area has no elements to point at, the mirror behind it has, at the same places. */
export function markBothSides(source, mirror, translation) {
  const choose = (sentence) => {
    for (const one of document.querySelectorAll(".chosen")) one.classList.remove("chosen");
    const number = sentence?.dataset.number;
    if (number === undefined) return;
    for (const side of [mirror, translation]) side.querySelector(`[data-number="${number}"]`)?.classList.add("chosen");
  };
  source.addEventListener("mousemove", (event) => choose(sentenceAt(mirror, event.clientX, event.clientY)));
  source.addEventListener("keyup", () => choose(sentenceOfCaret(source, mirror)));
  source.addEventListener("mouseleave", () => choose(null));
  translation.addEventListener("mouseover", (event) => choose(event.target.closest(".sentence")));
  translation.addEventListener("mouseleave", () => choose(null));
}

function sentenceAt(mirror, x, y) {
  const isThere = (box) => x >= box.left && x <= box.right && y >= box.top && y <= box.bottom;
  return [...mirror.querySelectorAll(".sentence")].find((one) => [...one.getClientRects()].some(isThere));
}

function sentenceOfCaret(source, mirror) {
  let end = 0;
  for (const node of mirror.childNodes) {
    end += node.textContent.length;
    if (source.selectionStart <= end && node.dataset) return node;
  }
  return null;
}

/** The text area is as high as its text, so that both sides scroll together. */
export function fit(source) {
  source.style.height = "auto";
  source.style.height = `${Math.max(source.scrollHeight, source.parentElement.clientHeight)}px`;
}
