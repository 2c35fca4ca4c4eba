// A lane: the log of one partition as a bar from its first to its last offset.
//
// Each segment is a box whose width is its share of the offsets. Above the bar, lines mark the high watermark and the
// last stable offset, and the committed offset of each group. A click on the axis below looks up the offset there.

import { el, place, reconcile, setAttribute, setText } from "./dom.js";
import { number, size } from "./texts.js";

const TONES = 8;
const tones = new Map();

// Return the number of a colour for a group or a producer. The first TONES names get different colours.
export function tone(name) {
  if (!tones.has(name)) tones.set(name, tones.size % TONES);
  return tones.get(name);
}

export function lane(topic, partition) {
  const segments = el("div", { class: "segments" });
  const cursors = el("div", { class: "cursors", "aria-hidden": "true" });
  const axis = el("div", { class: "axis", "aria-hidden": "true", title: "Click an offset to look it up" });
  const words = el("ul", { class: "legend" });
  const node = el("div", { class: "lane" }, el("div", { class: "bar" }, segments, cursors, axis), words);
  let span = { first: 0, end: 1 };
  axis.addEventListener("click", (event) => {
    const box = axis.getBoundingClientRect();
    const offset = Math.floor(span.first + ((event.clientX - box.left) / box.width) * (span.end - span.first));
    location.hash = `#/look-up/${encodeURIComponent(topic)}/${partition}/offset/${offset}`;
  });

  // Draw a partition. `scale` is the range of offsets that the whole width shows.
  function update(part, parts, positions, scale) {
    span = scale;
    const at = (offset) => Math.min(100, Math.max(0, (100 * (offset - scale.first)) / Math.max(1, scale.end - scale.first)));
    const ends = parts.map((each, n) => parts[n + 1]?.base_offset ?? part.log_end_offset);
    const boxes = parts.map((each, n) => ({ segment: each, end: ends[n] }));
    reconcile(segments, boxes, (it) => it.segment.base_offset, () => el("a", { class: "segment" }), (box, it) => {
      const { base_offset: base, bytes } = it.segment;
      const text = `segment ${base}: offsets ${base} to ${it.end - 1}, ${size(bytes)}`;
      setAttribute(box, "href", `#/partition/${encodeURIComponent(topic)}/${partition}/${base}`);
      setAttribute(box, "class", it.segment.is_active ? "segment active" : "segment");
      setAttribute(box, "title", text);
      setAttribute(box, "aria-label", text);
      place(box, at(base), at(it.end) - at(base));
    });
    const marks = marksOf(part, positions);
    reconcile(cursors, marks, (it) => it.name, (it) => el("span", { class: `cursor ${it.kind}` }), (mark, it) => place(mark, at(it.offset)));
    reconcile(words, marks, (it) => it.name, (it) => el("li", { class: it.kind }, el("i", { "aria-hidden": "true" }), el("span")),
      (li, it) => setText(li.lastChild, `${it.name} ${number(it.offset)}${it.note}`));
    setText(axis, `${number(scale.first)}`);
    setAttribute(axis, "data-end", number(scale.end));
  }
  return { node, update };
}

function marksOf(part, positions) {
  const marks = [{ name: "high watermark", kind: "high", offset: part.high_watermark, note: "" }];
  if (part.last_stable_offset !== part.high_watermark) {
    marks.push({ name: "last stable offset", kind: "stable", offset: part.last_stable_offset, note: "" });
  }
  for (const it of positions) {
    marks.push({ name: `group ${it.group}`, kind: `tone${tone(it.group)}`, offset: it.committed_offset, note: `, lag ${number(it.lag)}` });
  }
  return marks;
}
