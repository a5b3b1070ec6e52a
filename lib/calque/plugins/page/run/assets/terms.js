// Words of calque's own, explained where they stand: a button that opens a note, by mouse, keyboard and touch.

import { h } from "./dom.js";

const TERMS = {
  head: "The newest event in the source's log.",
  journal: "calque's own copy of the source's log. Targets read it.",
  position: "The last event that every live table of the target shows.",
  "as of": "The target shows all that the source had at this time.",
  epoch: "The record that a window is done: a number, and the event that the target shows since then.",
  "shows event": "The event whose version of the table a reader of the target sees.",
  lag: "How long ago the source logged the first event that the target does not show, and how many such events there are.",
  quarantine: "Tables, databases and functions that calque set aside with a reason. They stay as they are until somebody releases them.",
  bridge: "A change without the versions between, where these are not known: a reader may miss the table for one call, and never sees a mixture.",
  hop: "One atomic change at the target, from one version of the source to a later one.",
  "set aside": "Not live: being read, waiting, or in quarantine.",
};

export function term(word, label = word) {
  return h("button", { type: "button", class: "term", "data-term": word, "aria-haspopup": "true", title: TERMS[word] }, label);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-term]");
  if (!button) return;
  const note = document.getElementById("term");
  note.replaceChildren(h("strong", {}, button.dataset.term), ` ${TERMS[button.dataset.term]}`);
  const place = button.getBoundingClientRect();
  note.showPopover();
  note.style.left = `${Math.max(8, Math.min(place.left, innerWidth - note.offsetWidth - 8))}px`;
  const below = place.bottom + 6;
  note.style.top = `${below + note.offsetHeight > innerHeight ? Math.max(8, place.top - note.offsetHeight - 6) : below}px`;
});
