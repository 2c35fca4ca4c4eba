// The view "topic": the partitions of one topic as lanes with a common scale.

import { el, link, reconcile, setText } from "./dom.js";
import { lane } from "./lane.js";
import { count, number, rate, size } from "./texts.js";

const MOST_LANES = 1000, MANY_LANES = 50;

export function topic(main, store, name) {
  const facts = el("p", { class: "headline" });
  const gone = el("p", { class: "problem", role: "alert", hidden: true });
  const lanes = el("div", { class: "lanes" });
  main.append(el("h1", {}, name), gone, facts, lanes);

  return function update() {
    const about = store.get("topic", name);
    const partitions = store.partitions(name).slice(0, MOST_LANES);
    gone.hidden = about !== null;
    setText(gone, about === null ? store.missing(name, "topic", name) : "");
    const configs = about === null ? [] : Object.entries(about.configs).map(([key, value]) => `${key}=${value}`);
    const rest = about !== null && about.partitions > MOST_LANES ? [`the first ${number(MOST_LANES)} are shown`] : [];
    setText(facts, about === null ? "" : [count(about.partitions, "partition"), ...rest, ...configs].join(", "));
    const scale = {
      first: Math.min(...partitions.map(({ part }) => part.log_start_offset), Infinity),
      end: Math.max(...partitions.map(({ part }) => part.log_end_offset), -Infinity),
    };
    lanes.classList.toggle("many", partitions.length > MANY_LANES);
    const positions = store.positions(name);
    const segments = Map.groupBy(store.all("segment").filter((it) => it.key[1] === name), (it) => it.key[2]);
    reconcile(lanes, partitions, ({ key }) => key[2], ({ key }) => row(name, key[2]), (node, { key, part }) => {
      const own = (segments.get(key[2]) ?? []).map((it) => it.part).sort((a, b) => a.base_offset - b.base_offset);
      if (node.shown !== part) setText(node.note, `offsets ${number(part.log_start_offset)} to ${number(part.log_end_offset)}, ${size(part.bytes)}, ` +
        `${store.absence("segments") === null ? `${count(own.length, "segment")}, ` : ""}records in the last minute: ${rate(part.records_per_s)}${part.error === null ? "" : `; refuses records: ${part.error}`}`);
      node.shown = part;
      node.lane.update(part, own, positions.get(key[2]) ?? [], scale);
    });
  };
}

function row(name, partition) {
  const it = lane(name, partition);
  const note = el("span", { class: "note" });
  const heading = el("h2", {}, link(`${name}-${partition}`, "partition", name, partition), " ", note);
  return Object.assign(el("section", { class: "row" }, heading, it.node), { lane: it, note });
}
