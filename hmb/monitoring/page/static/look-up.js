// The view "look-up": how the broker finds an offset or a time, step by step, with the numbers of the running broker.
//
// The broker makes the steps with the code of `hmb index-inspect --lookup` (GET /look-up). The address names the
// partition, and the offset or the time: #/look-up/orders/0/offset/8100 or #/look-up/orders/0/time/1795627942326.

import { el, link, moment, place, setText, table } from "./dom.js";
import { read } from "./store.js";
import { count, number, time } from "./texts.js";

const TITLES = {
  segments: "Search the segments for the offset",
  "segment times": "Search the segments for the time",
  "time index": "Search the time index of the segment",
  "offset index": "Search the offset index of the segment",
  scan: "Scan the log",
};

// Words and an input that stay on one line.
const pair = (...parts) => el("span", { class: "pair" }, parts);

// A form that asks for an offset or a time in a partition. Without a partition, it also asks for the partition.
export function offsetForm(topic = "", partition = 0, kind = "offset", value = "") {
  const what = el("select", { "aria-label": "Look up" }, ["offset", "time"].map((name) => el("option", { value: name, selected: name === kind }, name)));
  const wanted = el("input", { "aria-label": "Offset, or time in ms or as 2026-11-25T12:00:00Z", required: true, size: 22, value });
  const name = el("input", { "aria-label": "Topic", required: true, size: 16, value: topic });
  const number = el("input", { "aria-label": "Partition", type: "number", min: 0, required: true, value: partition });
  const note = el("span", { class: "problem", role: "alert" });
  const go = (event) => {
    event.preventDefault();
    const found = what.value === "time" && !/^\d+$/.test(wanted.value) ? Date.parse(wanted.value) : Number(wanted.value);
    if (!Number.isSafeInteger(found) || found < 0) setText(note, "Write a number, or a time such as 2026-11-25T12:00:00Z.");
    else location.hash = `#/look-up/${encodeURIComponent(name.value)}/${number.value}/${what.value}/${found}`;
  };
  return el("form", { class: "form", onsubmit: go }, "Look up", pair(what, wanted), pair("in", name), pair("partition", number),
    el("button", {}, "Look up"), " ", note);
}

export function lookUp(main, store, topic = "", partition = 0, kind = "offset", value = "") {
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
  const answer = el("p", { role: "status" });
  const steps = el("ol", { class: "steps" });
  const controls = stepControls(steps);
  main.append(el("h1", {}, "Look-up"), offsetForm(topic, partition, kind, value), problem, answer, controls.node, steps);
  if (value === "") {
    setText(answer, "Choose a partition and an offset, or click the axis below a log.");
    return;
  }
  const absence = store.absence("segments");
  if (absence !== null) {
    shortLookUp(answer, problem, store, topic, partition, kind, value);
    return;
  }
  const wanted = kind === "time" ? { timestamp: value } : { offset: value };
  read("/look-up", { topic, partition, ...wanted }).then((view) => {
    const scan = view.steps.at(-1);
    answer.replaceChildren(...answerOf(view, scan, kind, (text, position) => link(text, "batch", topic, partition, view.segment, position)));
    steps.append(...view.steps.map((step) => el("li", {}, el("h2", {}, TITLES[step.name]), stepOf(step, topic, partition, view.segment))));
    controls.show();
  }, (error) => {
    problem.hidden = false;
    setText(problem, error.message);
  });
}

// The look-up in a broker whose files cannot be read. ListOffsets finds the offset of a time, but no API shows the steps.
async function shortLookUp(answer, problem, store, topic, partition, kind, value) {
  try {
    const part = store.get("partition", topic, Number(partition));
    if (part === null) throw new Error(store.missing(`${topic}-${partition}`, "partition", topic, Number(partition)));
    const [start, end] = [part.log_start_offset, part.log_end_offset];
    if (kind === "offset" && (Number(value) < start || Number(value) >= end)) throw new Error(`Offset ${number(Number(value))} is not in the log. The first offset is ${number(start)}, and the log end offset is ${number(end)}.`);
    const offset = kind === "time" ? await read("/offset-of-time", { topic, partition, timestamp: value }) : Number(value);
    const found = offset === null ? [`No record is as new as ${time(Number(value))}.`]
      : ["The record is in the ", link(`batch with offset ${number(offset)}`, "fetched-batch", topic, partition, offset), "."];
    answer.replaceChildren(...found, ` The steps are not shown: ${store.absence("segments")}.`);
  } catch (error) {
    problem.hidden = false;
    setText(problem, error.message);
  }
}

// Return the texts and the links of the answer. `batchLink` makes a link to the batch at a position.
function answerOf(view, scan, kind, batchLink) {
  if (scan.found === null) return ["The scan has not found the batch."];
  const batch = batchLink(`batch at byte ${number(scan.found.position)}`, scan.found.position);
  const rest = ` of segment ${number(view.segment)}. The scan has read ${count(scan.read.length, "header")}.`;
  if (kind === "offset") return [`Offset ${number(view.wanted)} is in the `, batch, rest];
  const offset = view.offset === null ? "no offset" : `offset ${number(view.offset)}`;
  return [`The first record at or after ${time(view.wanted)} has ${offset}. This record is in the `, batch, rest];
}

// Buttons that show the steps one after the other.
function stepControls(steps) {
  let shown = 0;
  const status = el("span", { role: "status" });
  const show = (wanted) => {
    shown = Math.max(1, Math.min(wanted, steps.children.length));
    [...steps.children].forEach((step, n) => { step.hidden = n >= shown; });
    setText(status, ` step ${shown} of ${steps.children.length} `);
    back.disabled = shown === 1;
    next.disabled = shown === steps.children.length;
  };
  const back = el("button", { type: "button", onclick: () => show(shown - 1) }, "Back");
  const next = el("button", { type: "button", onclick: () => show(shown + 1) }, "Next step");
  const node = el("p", { class: "form", hidden: true }, back, status, next);
  return { node, show: () => { node.hidden = false; show(steps.children.length); } };
}

function stepOf(step, topic, partition, segment) {
  if (step.name === "scan") return scanOf(step, topic, partition, segment);
  if (step.read !== undefined) return segmentTimes(step);
  const wanted = step.what === "timestamp" ? `timestamp ${time(step.wanted)}` : `offset ${number(step.wanted)}`;
  const rows = step.steps.map((it) => bisectionRow(it, step));
  const keyText = keyOf(step);
  const [key, value] = step.entry ?? [];
  const found = step.entry === null
    ? "All entries are greater, so the search continues at the beginning of the segment."
    : `Entry ${number(step.number)} is the last one ${step.what === "timestamp" ? "below" : "at or below"} it: ${keyText(key)} → ${typeof value === "number" ? number(value) : value}.`;
  return el("div", {}, el("p", {}, `Wanted: ${wanted}. A binary search in ${count(step.count, "entry", "entries")}.`),
    rows.length ? el("ol", { class: "bisection", start: 0 }, rows) : null, el("p", {}, found));
}

// Return the function that writes a key of an index as text.
const keyOf = (step) => (step.what === "timestamp" ? time : number);

// One comparison of a binary search: the entries that are still possible, to scale, and the entry in the middle.
function bisectionRow(it, step) {
  const range = el("span", { class: "range" });
  const middle = el("span", { class: "middle" });
  const at = (entry) => (100 * entry) / step.count;
  place(range, at(it.low), at(it.high - it.low + 1));
  place(middle, at(it.middle), at(1));
  const sign = it.goes_right ? "is not greater: go right" : "is greater: go left";
  return el("li", {}, el("span", { class: "entries", "aria-hidden": "true" }, range, middle),
    el("span", {}, `entries ${number(it.low)} to ${number(it.high)}: ${step.what} ${keyOf(step)(it.key)} of entry ${number(it.middle)} ${step.what === "timestamp" && !it.goes_right ? "is not below: go left" : sign}`));
}

function segmentTimes(step) {
  const rows = table(`Greatest timestamps of the first of ${count(step.count, "segment")}`, [
    { name: "segment number", cell: (row) => number(row.number), isNumber: true },
    { name: "greatest timestamp", cell: (row) => moment(row.key) },
    { name: "", cell: (row) => (row.is_found ? "may contain the time" : "too old") },
  ], (row) => row.number);
  rows.show(step.read);
  return rows.node;
}

function scanOf(step, topic, partition, segment) {
  const rows = table(`Headers from byte ${number(step.from)} of ${number(step.bytes)} on`, [
    { name: "position", cell: (row) => link(number(row.position), "batch", topic, partition, segment, row.position), isNumber: true },
    { name: "offsets", cell: (row) => `${number(row.base_offset)} to ${number(row.last_offset)}` },
    { name: "greatest timestamp", cell: (row) => moment(row.max_timestamp) },
    { name: "", cell: (row) => (row.is_found ? "found" : "continue") },
  ], (row) => row.position);
  rows.show(step.read);
  return rows.node;
}
