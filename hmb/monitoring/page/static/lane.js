// A lane: the log of one partition as a bar from its first to its last offset.
//
// Each segment is a box whose width is its share of the offsets. Above the bar, lines mark the high watermark and the
// last stable offset, and the committed offset of each group. Lines at nearly the same offset share the height, so that
// none hides another one. A click on the axis below looks up the offset there.

import { el, isSame, place, reconcile, setAttribute, setText, stack } from "./dom.js";
import { number, size } from "./texts.js";

export const TONES = 7;
const NEAR = 1; // percent of the width; lines at a smaller distance share the height

// Return the number of a colour for a group. The number comes from a hash of the group's name (FNV-1a), so a group has
// the same colour after each start. Two groups can have the same colour.
function tone(name) {
  let hash = 2166136261;
  for (const character of name) hash = Math.imul(hash ^ character.codePointAt(0), 16777619);
  return (hash >>> 0) % TONES;
}

export function lane(topic, partition) {
  const segments = el("div", { class: "segments" });
  const cursors = el("div", { class: "cursors", "aria-hidden": "true" });
  const axis = el("div", { class: "axis", "aria-hidden": "true", title: "Click an offset to look it up" });
  const words = el("ul", { class: "legend" });
  const node = el("div", { class: "lane" }, el("div", { class: "bar" }, segments, cursors, axis), words);
  let span = { first: 0, end: 1 }, drawn = [];
  axis.addEventListener("click", (event) => {
    const box = axis.getBoundingClientRect();
    const offset = Math.floor(span.first + ((event.clientX - box.left) / box.width) * (span.end - span.first));
    location.hash = `#/look-up/${encodeURIComponent(topic)}/${partition}/offset/${offset}`;
  });

  // Draw a partition. `scale` is the range of offsets that the whole width shows.
  function update(part, parts, positions, scale) {
    const wanted = [part, scale.first, scale.end, ...parts, ...positions.flatMap((it) => [it.group, it.committed_offset, it.lag])];
    if (isSame(drawn, wanted)) return;
    drawn = wanted;
    span = scale;
    const at = (offset) => Math.min(100, Math.max(0, (100 * (offset - scale.first)) / Math.max(1, scale.end - scale.first)));
    const ends = parts.map((each, n) => parts[n + 1]?.base_offset ?? part.log_end_offset);
    const boxes = parts.length ? parts.map((each, n) => ({ segment: each, end: ends[n] })) : [wholeLog(part)];
    reconcile(segments, boxes, (it) => it.segment.base_offset, () => el("a", { class: "segment" }), (box, it) => {
      const { base_offset: base, bytes } = it.segment;
      if (box.segment !== it.segment || box.end !== it.end) {
        Object.assign(box, it);
        const text = `${parts.length ? `segment ${number(base)}` : "the log"}: offsets ${number(base)} to ${number(it.end - 1)}, ${size(bytes)}`;
        setAttribute(box, "href", `#/partition/${encodeURIComponent(topic)}/${partition}/${base}`);
        setAttribute(box, "class", it.segment.is_active ? "segment active" : "segment");
        setAttribute(box, "title", text);
        setAttribute(box, "aria-label", text);
      }
      place(box, at(base), at(it.end) - at(base));
    });
    const marks = layered(marksOf(part, positions).map((it) => ({ ...it, at: at(it.offset) })));
    reconcile(cursors, marks, (it) => it.name, (it) => el("span", { class: `cursor ${it.kind}` }), (mark, it) => {
      place(mark, it.at);
      stack(mark, it.layer, it.layers);
    });
    const active = parts.filter((it) => it.is_active).map((it) => ({ name: "active segment from", kind: "active", offset: it.base_offset, note: "" }));
    reconcile(words, [...active, ...marks], (it) => it.name, (it) => el("li", { class: it.kind }, el("i", { "aria-hidden": "true" }), el("span")),
      (li, it) => setText(li.lastChild, `${it.name} ${number(it.offset)}${it.note}`));
    setText(axis, `${number(scale.first)}`);
    setAttribute(axis, "data-end", number(scale.end));
  }
  return { node, update };
}

// The box of a log whose segments are unknown, because they come from a broker's APIs.
function wholeLog(part) {
  return { segment: { base_offset: part.log_start_offset, bytes: part.bytes, is_active: false }, end: part.log_end_offset };
}

// Add `layer` and `layers` to each mark, and return the marks. Marks that are near to each other get different layers.
function layered(marks) {
  const crowds = [];
  for (const mark of marks.toSorted((a, b) => a.at - b.at)) {
    if (crowds.length && mark.at - crowds.at(-1)[0].at < NEAR) crowds.at(-1).push(mark);
    else crowds.push([mark]);
  }
  for (const crowd of crowds) {
    crowd.sort((a, b) => marks.indexOf(a) - marks.indexOf(b));
    crowd.forEach((mark, n) => Object.assign(mark, { layer: n, layers: crowd.length }));
  }
  return marks;
}

function marksOf(part, positions) {
  const marks = [{ name: "high watermark", kind: "high", offset: part.high_watermark, note: "" }];
  if (part.last_stable_offset !== part.high_watermark) {
    marks.push({ name: "last stable offset", kind: "stable", offset: part.last_stable_offset, note: "" });
  }
  for (const it of positions.toSorted((a, b) => a.group.localeCompare(b.group))) {
    marks.push({ name: `group ${it.group}`, kind: `tone${tone(it.group)}`, offset: it.committed_offset, note: `, lag ${number(it.lag)}` });
  }
  return marks;
}
