// The batches of a partition whose files cannot be read: the page reads them with Fetch, from an offset on.

import { BATCH_COLUMNS } from "./batch-columns.js";
import { el, link, setText, table } from "./dom.js";
import { read } from "./store.js";
import { count, number } from "./texts.js";

export function fetchedBatches(topic, id, first) {
  const heading = el("h2", {}, "Batches");
  const problem = el("p", { class: "problem", hidden: true });
  const list = table("Batches, read with Fetch", [
    { name: "offsets", cell: (row) => link(`${number(row.base_offset)} to ${number(row.last_offset)}`, "fetched-batch", topic, id, row.base_offset) },
    ...BATCH_COLUMNS,
  ], (row) => row.base_offset, { empty: "No batch has an offset from here on." });
  const earlier = el("button", { type: "button", onclick: () => load(pages.pop()) }, "Earlier batches");
  const later = el("button", { type: "button", onclick: () => { pages.push(from); load(next); } }, "Later batches");
  const node = el("section", {}, heading, problem, list.node, el("p", { class: "form" }, earlier, later));
  const pages = [];
  let from = first, next = null;

  async function load(offset) {
    from = offset;
    try {
      const view = await read("/fetched", { topic, partition: id, offset });
      next = view.next;
      list.show(view.batches);
      setText(heading, `${count(view.batches.length, "batch", "batches")} from offset ${number(offset)} on`);
      problem.hidden = true;
    } catch (error) {
      problem.hidden = false;
      setText(problem, error.message);
    }
    earlier.hidden = pages.length === 0;
    later.hidden = next === null;
  }
  load(first);
  return { node, leave: () => {} };
}
