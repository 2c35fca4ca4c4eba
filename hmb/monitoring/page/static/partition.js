// The view "partition": its segments, and the batches and index entries of one segment.
//
// The address names the segment: #/partition/orders/0/8021. If the address names no segment, the view shows the active
// segment. The batches come from the segment's file (GET /segment). The view reads them again when the segment has
// grown.

import { BATCH_COLUMNS } from "./batch-columns.js";
import { el, link, moment, setText, table } from "./dom.js";
import { eventList } from "./events.js";
import { fetchedBatches } from "./fetched.js";
import { lane } from "./lane.js";
import { offsetForm } from "./look-up.js";
import { read } from "./store.js";
import { count, number, rate, size } from "./texts.js";
import { strip } from "./strip.js";

const REREAD = 1000; // ms between two reads of a growing segment
const UNREAD = "The broker has not counted the batches of segments that are older than its start.";

export function partition(main, store, topic, text, base) {
  const id = Number(text);
  const gone = el("p", { class: "problem", role: "alert", hidden: true });
  const facts = el("p", { class: "headline" });
  const bar = lane(topic, id);
  const segments = segmentTable(topic, id);
  const unread = el("p", { class: "note", hidden: true }, `A dash instead of a number of batches: ${UNREAD}`);
  const producers = producerTable(store.absence("producers"));
  const happened = eventList("Events of this partition since the start of the broker", store.absence("events"));
  const absence = store.absence("segments");
  const first = () => Number(base ?? Math.max(0, store.get("partition", topic, id)?.log_start_offset ?? 0));
  const detail = absence === null ? segmentDetail(topic, id) : fetchedBatches(topic, id, first());
  const absent = el("p", { class: "note" }, `No segments are shown: ${absence}.`);
  main.append(
    el("nav", { class: "path", "aria-label": "Path" }, link("Topics", "topics"), " / ", link(topic, "topic", topic)),
    el("h1", {}, `${topic}-${text}`), gone, facts, bar.node, offsetForm(topic, id), ...(absence === null ? [segments.node, unread] : [absent]), detail.node, producers.node, happened.node);

  function update() {
    const part = store.get("partition", topic, id);
    gone.hidden = part !== null;
    if (part === null) {
      setText(gone, store.missing(`${topic}-${text}`, "partition", topic, id));
      return;
    }
    const own = store.segments(topic, id);
    const chosen = own.find((it) => String(it.base_offset) === base) ?? own[own.length - 1];
    setText(facts, factsOf(part));
    bar.update(part, own, store.positions(topic).get(id) ?? [], { first: part.log_start_offset, end: part.log_end_offset });
    segments.show(own.map((it, n) => ({ ...it, end: own[n + 1]?.base_offset ?? part.log_end_offset, isChosen: it === chosen })));
    unread.hidden = own.every((it) => it.batches !== null);
    producers.show(part.producers);
    happened.show(store.all("event").map((it) => it.part).filter((it) => it.text.startsWith(`${topic}-${id}: `)));
    if (chosen !== undefined) detail.update(chosen);
  }
  return Object.assign(update, { leave: detail.leave });
}

function factsOf(part) {
  const texts = [
    `offsets ${number(part.log_start_offset)} to ${number(part.log_end_offset)}`,
    `${size(part.bytes)}`,
    `records in the last minute: ${rate(part.records_per_s)}`,
    `leader epoch ${part.leader_epoch}`,
  ];
  if (part.syncs !== null) {
    texts.push(`on disk up to offset ${number(part.recovery_point)} after ${count(part.syncs, "sync")} since the start of the broker`);
  }
  if (part.dirty_ratio !== null) texts.push(`dirty ratio ${part.dirty_ratio.toFixed(2)}`);
  if (part.error !== null) texts.push(`refuses records: ${part.error}`);
  return texts.join(", ");
}

function segmentTable(topic, id) {
  return table("Segments", [
    { name: "segment", cell: (row) => link(row.isChosen ? `${number(row.base_offset)} (shown below)` : number(row.base_offset), "partition", topic, id, row.base_offset) },
    { name: "offsets", cell: (row) => number(row.end - row.base_offset), isNumber: true },
    { name: "bytes", cell: (row) => size(row.bytes), isNumber: true },
    { name: "batches", cell: (row) => (row.batches === null ? el("span", { title: UNREAD }, "–") : number(row.batches)), isNumber: true },
    { name: "index entries", cell: (row) => `${number(row.offset_index_entries)} + ${number(row.time_index_entries)}`, isNumber: true },
    { name: "first time", cell: (row) => moment(row.first_timestamp) },
    { name: "last time", cell: (row) => moment(row.max_timestamp) },
    { name: "", cell: (row) => (row.is_active ? "active" : "") },
  ], (row) => row.base_offset);
}

function producerTable(absence) {
  return table("Idempotent and transactional producers", [
    { name: "producer id", cell: (row) => String(row.producer_id), isNumber: true },
    { name: "epoch", cell: (row) => String(row.epoch), isNumber: true },
    { name: "last sequence", cell: (row) => number(row.last_sequence), isNumber: true },
    { name: "last batch", cell: (row) => moment(row.last_timestamp) },
    { name: "open transaction", cell: (row) => (row.transaction_start === null ? "no" : `since offset ${number(row.transaction_start)}`) },
  ], (row) => row.producer_id, { empty: absence === null ? "none" : `No producers are shown: ${absence}.` });
}

// The batches of one segment: a strip to scale, and a table.
function segmentDetail(topic, id) {
  const heading = el("h2");
  const problem = el("p", { class: "problem", hidden: true });
  const drawing = strip(topic, id);
  const batches = table("Batches", [
    { name: "position", cell: (row) => link(number(row.position), "batch", topic, id, row.segment, row.position), isNumber: true },
    { name: "offsets", cell: (row) => `${number(row.base_offset)} to ${number(row.last_offset)}` },
    ...BATCH_COLUMNS,
  ], (row) => row.position, { empty: "The segment contains no batch yet." });
  const earlier = el("button", { type: "button", onclick: () => turn(...(pages.pop() ?? [0, 0])) }, "Earlier batches");
  const later = el("button", { type: "button", onclick: () => { pages.push([from, skipped]); turn(next, skipped + shown); } }, "Later batches");
  const node = el("section", {}, heading, problem, drawing.node, batches.node, el("p", { class: "form" }, earlier, later));
  const pages = [];
  let from = 0, skipped = 0, shown = 0, next = null, segment = null, seen = null, timer = null;

  async function load() {
    const loaded = segment;
    try {
      const view = await read("/segment", { topic, partition: id, segment: loaded.base_offset, position: from });
      if (segment.base_offset !== loaded.base_offset) return;
      next = view.next;
      drawing.update(view, loaded.base_offset);
      batches.show(view.batches.map((it) => ({ ...it, segment: loaded.base_offset })));
      shown = view.batches.length;
      setText(heading, `Segment ${number(loaded.base_offset)}: ${pageOf(skipped, shown, next === null ? skipped + shown : loaded.batches)}`);
      problem.hidden = true;
    } catch (error) {
      problem.hidden = false;
      setText(problem, error.message);
    }
    drawing.node.hidden = batches.node.hidden = shown === 0 && !problem.hidden;
    earlier.hidden = from === 0;
    later.hidden = next === null;
  }

  function turn(position, number) {
    from = position;
    skipped = number;
    load();
  }

  function update(chosen) {
    const id = `${chosen.base_offset} ${chosen.bytes}`;
    if (segment !== null && segment.base_offset !== chosen.base_offset) { // The log has a new active segment.
      clearTimeout(timer);
      timer = null;
      from = 0;
      pages.length = 0;
    }
    segment = chosen;
    if (id === seen || timer !== null) return;
    seen = id;
    timer = setTimeout(() => { timer = null; }, REREAD);
    load();
  }
  return { node, update, leave: () => clearTimeout(timer) };
}

// The batches of the page with their numbers, and the total. The total is null if the broker has not counted the batches.
function pageOf(skipped, shown, total) {
  if (shown === 0) return "no batches";
  const of = total === null ? "an unknown number" : number(total);
  return `batches ${number(skipped + 1)} to ${number(skipped + shown)} of ${of}`;
}
