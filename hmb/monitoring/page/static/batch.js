// The view "batch": the header of one batch, its records, and its bytes as `hmb dump-log --hex` prints them. This view
// writes all numbers as the command does: without separators.

import { el, link, moment, setText, table } from "./dom.js";
import { read } from "./store.js";

// A number with its noun, without separators.
const plainCount = (value, one) => `${value} ${one}${value === 1 ? "" : "s"}`;

export function batch(main, store, topic, partition, segment, position) {
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
  const content = el("div");
  main.append(
    el("nav", { class: "path", "aria-label": "Path" }, link("Topics", "topics"), " / ", link(topic, "topic", topic), " / ",
      link(`${topic}-${partition}`, "partition", topic, partition, segment)),
    el("h1", {}, `Batch at byte ${position} of segment ${segment}`), problem, content);
  read("/batch", { topic, partition, segment, position }).then((view) => show(content, view), (error) => {
    problem.hidden = false;
    setText(problem, error.message);
  });
}

// A batch of a broker whose files cannot be read. The offset names the batch.
export function fetchedBatch(main, store, topic, partition, offset) {
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
  const content = el("div");
  main.append(
    el("nav", { class: "path", "aria-label": "Path" }, link("Topics", "topics"), " / ", link(topic, "topic", topic), " / ",
      link(`${topic}-${partition}`, "partition", topic, partition, offset)),
    el("h1", {}, `Batch with offset ${offset}`), problem, content);
  read("/fetched-batch", { topic, partition, offset }).then((view) => show(content, view), (error) => {
    problem.hidden = false;
    setText(problem, error.message);
  });
}

function show(content, view) {
  const header = Object.entries(view.header).map(([name, value]) => ({ name, value: String(value ?? "–") }));
  const fields = table("Header", [
    { name: "field", cell: (row) => row.name },
    { name: "value", cell: (row) => row.value, isLong: true },
  ], (row) => row.name);
  fields.show(header);
  const records = table("Records", [
    { name: "offset", cell: (row) => String(row.offset), isNumber: true },
    { name: "timestamp", cell: (row) => moment(row.timestamp) },
    { name: "key", cell: (row) => shown(row.key), isLong: true },
    { name: "value", cell: (row) => shown(row.value), isLong: true },
    { name: "headers", cell: (row) => row.headers.map(([name, value]) => `${name}=${shown(value)}`).join(", "), isLong: true },
  ], (row) => row.offset, { empty: "No records are shown." });
  records.show(view.records);
  const missing = (view.header.count ?? view.records.length) - view.records.length;
  const notes = [
    view.note,
    view.damage === null ? null : `The batch is damaged: ${view.damage}`,
    view.problem === null ? null : `Not all records can be decoded: ${view.problem}`,
    view.note === null && missing > 0 ? `${plainCount(missing, "more record")} in this batch` : null,
    view.has_more_lines ? "The batch has more lines of bytes; hmb dump-log --hex prints all of them." : null,
  ].filter((note) => note !== null);
  content.append(...notes.map((note) => el("p", { class: "note" }, note)),
    records.node, fields.node,
    el("h2", {}, "Bytes"),
    el("p", { class: "note" }, view.file === null ? "The bytes come from a Fetch response. Position 0 is the first byte of the batch." : `hmb dump-log --hex ${view.file}`),
    el("pre", { tabindex: "0", "aria-label": "Bytes of the batch" }, view.lines.join("\n")));
}

// A key or a value as text. A long text is cut, and the size follows.
function shown(it) {
  if (it.bytes < 0) return "null";
  const text = it.is_text ? it.text : `bytes ${it.text}`;
  const size = new TextEncoder().encode(it.text).length;
  return it.is_text && size === it.bytes ? text : `${text}… (${plainCount(it.bytes, "byte")})`;
}
