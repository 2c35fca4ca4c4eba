// A strip: the batches of a segment in the order of their bytes, to scale, with a mark for each index entry.
//
// The colour shows the codec or the producer. The table below the strip contains the same facts as text.

import { el, place, reconcile, setAttribute, setText } from "./dom.js";
import { TONES } from "./lane.js";
import { count, number } from "./texts.js";

const DENSE = 4; // px; if the average batch is narrower, the bar has no gaps between its batches

export function strip(topic, id) {
  const blocks = el("div", { class: "blocks" });
  const marks = el("div", { class: "marks", "aria-hidden": "true" });
  const legend = el("ul", { class: "legend" });
  const choice = (name) => el("label", {}, el("input", { type: "radio", name: "colour", value: name, checked: name === "codec", onchange: () => draw() }), ` ${name} `);
  const node = el("figure", {},
    el("fieldset", {}, el("legend", {}, "Colour shows the"), choice("codec"), choice("producer")),
    el("div", { class: "strip" }, blocks, marks), legend, el("figcaption"));
  let view = null, segment = 0;
  new ResizeObserver(() => setDensity()).observe(blocks);

  function setDensity() {
    blocks.classList.toggle("dense", view !== null && blocks.clientWidth < DENSE * view.batches.length);
  }

  function draw() {
    if (view === null) return;
    const byProducer = node.querySelector("input[value=producer]").checked;
    const first = view.batches[0]?.position ?? 0;
    const last = view.batches.at(-1);
    const end = last === undefined ? 1 : last.position + last.bytes;
    const at = (position) => (100 * (position - first)) / (end - first);
    reconcile(blocks, view.batches, (it) => `${segment} ${it.position}`, () => el("a", { class: "block" }), (block, it) => {
      const text = `batch at byte ${number(it.position)}: offsets ${number(it.base_offset)} to ${number(it.last_offset)}, ` +
        `${count(it.bytes, "byte")}, codec ${it.codec}, ${producerOf(it)}`;
      setAttribute(block, "href", `#/batch/${encodeURIComponent(topic)}/${id}/${segment}/${it.position}`);
      setAttribute(block, "class", `block ${colourOf(it, byProducer)}${it.is_control ? " control" : ""}`);
      setAttribute(block, "title", text);
      setAttribute(block, "aria-label", text);
      place(block, at(it.position), at(it.position + it.bytes) - at(it.position));
    });
    setDensity();
    const entries = view.offset_index.entries.filter(([, position]) => position >= first && position < end);
    reconcile(marks, entries, ([offset]) => offset, ([offset, position]) => el("i", { title: `index entry: offset ${number(offset)} -> byte ${number(position)}` }),
      (mark, [, position]) => place(mark, at(position)));
    const names = new Map(view.batches.map((it) => [byProducer ? producerOf(it) : `codec ${it.codec}`, colourOf(it, byProducer)]));
    reconcile(legend, [...names], ([name]) => name, ([name]) => el("li", {}, el("i", { "aria-hidden": "true" }), name),
      (li, [, colour]) => setAttribute(li, "class", colour));
    setText(node.lastChild, `${count(view.offset_index.count, "entry", "entries")} in the offset index (marks below the batches), ` +
      `${number(view.time_index.count)} in the time index`);
  }
  return { node, update: (shown, base) => { view = shown; segment = base; draw(); } };
}

const producerOf = (it) => (it.producer_id < 0 ? "no producer id" : `producer ${it.producer_id}`);

// The broker assigns producer ids in ascending order, so the remainder modulo TONES gives neighbours different colours.
function colourOf(it, byProducer) {
  if (!byProducer) return `codec-${it.codec}`;
  return it.producer_id < 0 ? "codec-none" : `tone${it.producer_id % TONES}`;
}
