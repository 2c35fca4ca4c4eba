// The view "topics": one row for each topic, and the numbers of the whole broker.

import { el, filterField, link, setText, table } from "./dom.js";
import { count, duration, number, rate, size } from "./texts.js";

const MOST_ROWS = 500;
const PARTS = { last_heartbeat: "last heartbeat", lag_ms: "lag in time", syncs: "syncs, dirty ratio" };

export function topics(main, store) {
  const headline = el("p", { class: "headline" });
  const filter = filterField(() => update());
  const rest = el("p", { class: "note" });
  const list = table("Topics", [
    { name: "topic", cell: (row) => link(row.topic, "topic", row.topic), isLong: true },
    { name: "partitions", cell: (row) => number(row.partitions), isNumber: true },
    { name: "records", cell: (row) => number(row.records), isNumber: true },
    { name: "records in (last minute)", cell: (row) => rate(row.rate), isNumber: true },
    { name: "bytes", cell: (row) => size(row.bytes), isNumber: true },
    { name: "segments", cell: (row) => (store.absence("segments") === null ? number(row.segments) : "–"), isNumber: true },
    { name: "refuses records", cell: (row) => row.error ?? "no", isLong: true },
  ], (row) => row.topic, { empty: "No topic exists. A producer creates one, or: hmb topics create orders" });
  const absent = table("What this page cannot show", [
    { name: "part", cell: (row) => PARTS[row[0]] ?? row[0] },
    { name: "reason", cell: (row) => row[1], isLong: true },
  ], (row) => row[0]);
  main.append(el("h1", {}, "Topics"), headline,
    el("p", { class: "form" }, filter.nodes), list.node, rest, absent.node);

  function update() {
    const rows = sums(store);
    const found = rows.filter((row) => filter.matches(row.topic));
    setText(headline, headlineOf(store, rows));
    const missing = Object.entries(store.get("broker").missing);
    absent.node.hidden = missing.length === 0;
    absent.show(missing);
    setText(rest, found.length > MOST_ROWS ? `${number(found.length - MOST_ROWS)} more topics; use the filter` : "");
    list.show(found.slice(0, MOST_ROWS));
  }
  return update;
}

function headlineOf(store, rows) {
  const { time, started, process, data_dir: directory } = store.get("broker");
  const sum = (name) => rows.reduce((all, row) => all + row[name], 0);
  const segments = store.absence("segments") === null ? ` in ${count(sum("segments"), "segment")}` : "";
  const memory = process === null || process.resident_bytes === null ? null : `${size(process.resident_bytes)} of memory`;
  return [
    started === null ? null : `up ${duration(time - started)}`,
    count(rows.length, "topic"),
    count(sum("partitions"), "partition"),
    `${size(sum("bytes"))}${segments}`,
    process === null ? null : count(process.threads, "thread"),
    memory,
    directory === null ? null : `data in ${directory}`,
  ].filter((text) => text !== null).join(", ");
}

// Return one row for each topic, with the sums of its partitions. One pass over the partitions is enough.
function sums(store) {
  const rows = new Map();
  for (const { key, part } of store.all("topic")) {
    rows.set(key[1], { topic: key[1], isInternal: part.is_internal, partitions: part.partitions, records: 0, bytes: 0, segments: 0, rate: null, error: null });
  }
  for (const { key, part } of store.all("partition")) {
    const row = rows.get(key[1]);
    if (row === undefined) continue;
    row.records += part.log_end_offset - part.log_start_offset;
    row.bytes += part.bytes;
    if (part.records_per_s !== null) row.rate = (row.rate ?? 0) + part.records_per_s;
    row.error ??= part.error;
  }
  for (const { key } of store.all("segment")) {
    const row = rows.get(key[1]);
    if (row !== undefined) row.segments += 1;
  }
  return [...rows.values()].sort((a, b) => a.isInternal - b.isInternal || a.topic.localeCompare(b.topic));
}
