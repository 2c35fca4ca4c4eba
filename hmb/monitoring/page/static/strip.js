// A strip: the batches of a segment in the order of their bytes, to scale, with a mark for each index entry.
//
// The colour shows the codec or the producer. The table below the strip contains the same facts as text.

import { el, place, reconcile, setAttribute, setText } from "./dom.js";
import { tone } from "./lane.js";
import { number } from "./texts.js";

export function strip(topic, id) {
  const blocks = el("div", { class: "blocks" });
  const marks = el("div", { class: "marks", "aria-hidden": "true" });
  const legend = el("ul", { class: "legend" });
  const choice = (name) => el("label", {}, el("input", { type: "radio", name: "colour", value: name, checked: name === "codec", onchange: () => draw() }), ` ${name} `);
  const node = el("figure", {},
    el("fieldset", {}, el("legend", {}, "Colour shows the"), choice("codec"), choice("producer")),
    el("div", { class: "strip" }, blocks, marks), legend, el("figcaption"));
  let view = null, segment = 0;

  function draw() {
    if (view === null) return;
    const byProducer = node.querySelector("input[value=producer]").checked;
    const first = view.batches[0]?.position ?? 0;
    const last = view.batches.at(-1);
    const end = last === undefined ? 1 : last.position + last.bytes;
    const at = (position) => (100 * (position - first)) / (end - first);
    reconcile(blocks, view.batches, (it) => `${segment} ${it.position}`, () => el("a", { class: "block" }), (block, it) => {
      const text = `batch at byte ${it.position}: offsets ${it.base_offset} to ${it.last_offset}, ${it.bytes} bytes, codec ${it.codec}, ${producerOf(it)}`;
      setAttribute(block, "href", `#/batch/${encodeURIComponent(topic)}/${id}/${segment}/${it.position}`);
      setAttribute(block, "class", `block ${colourOf(it, byProducer)}${it.is_control ? " control" : ""}`);
      setAttribute(block, "title", text);
      setAttribute(block, "aria-label", text);
      place(block, at(it.position), at(it.position + it.bytes) - at(it.position));
    });
    const entries = view.offset_index.entries.filter(([, position]) => position >= first && position < end);
    reconcile(marks, entries, ([offset]) => offset, ([offset, position]) => el("i", { title: `index entry: offset ${offset} -> byte ${position}` }),
      (mark, [, position]) => place(mark, at(position)));
    const names = new Map(view.batches.map((it) => [byProducer ? producerOf(it) : `codec ${it.codec}`, colourOf(it, byProducer)]));
    reconcile(legend, [...names], ([name]) => name, ([name]) => el("li", {}, el("i", { "aria-hidden": "true" }), name),
      (li, [, colour]) => setAttribute(li, "class", colour));
    setText(node.lastChild, `${number(view.offset_index.count)} entries in the offset index (marks below the batches), ` +
      `${number(view.time_index.count)} in the time index`);
  }
  return { node, update: (shown, base) => { view = shown; segment = base; draw(); } };
}

const producerOf = (it) => (it.producer_id < 0 ? "no producer id" : `producer ${it.producer_id}`);

function colourOf(it, byProducer) {
  if (!byProducer) return `codec-${it.codec}`;
  return it.producer_id < 0 ? "codec-none" : `tone${tone(String(it.producer_id))}`;
}
