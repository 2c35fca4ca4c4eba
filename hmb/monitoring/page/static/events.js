// The view "events": what happened in the broker, as a time line with one row for each kind, and as a list.

import { el, filterField, moment, reconcile, setAttribute, setText, svg, table } from "./dom.js";
import { clock, count, number, time } from "./texts.js";

const KINDS = ["group", "roll", "retention", "compaction", "recovery", "topic", "login"];
const ROW = 26, LEFT = 96, RIGHT = 8; // px
const MOST_ROWS = 200;

export function events(main, store) {
  const choice = el("select", { id: "kind", onchange: () => update() }, ["all", ...KINDS].map((kind) => el("option", { value: kind }, kind)));
  const period = el("p", { class: "headline" });
  const line = timeLine();
  const list = eventList("Events, newest first", null);
  const absence = store.absence("events");
  const filter = filterField(() => update());
  main.append(el("h1", {}, "Events"), period);
  if (absence === null) {
    main.append(el("figure", {}, line.node), el("p", { class: "form" }, el("label", { for: "kind" }, "Kind "), choice, filter.nodes), list.node);
  }

  function update() {
    const all = store.all("event").map((it) => it.part);
    setText(period, absence === null ? periodOf(all, store.get("broker").started) : `No events are shown: ${absence}.`);
    line.update(all, store.get("broker").time);
    list.show(all.filter((it) => (choice.value === "all" || it.kind === choice.value) && filter.matches(it.text)));
  }
  return update;
}

// The broker keeps events only in memory, so none is older than the broker's start. The first event has the number 0.
function periodOf(all, started) {
  const isComplete = all.length === 0 || all.some((it) => it.number === 0);
  const rest = isComplete ? "" : ` The broker keeps only the last ${number(all.length)} of them.`;
  return `Events since the start of the broker at ${time(started)}.${rest} A restart clears them.`;
}

// A table of events, newest first.
export function eventList(caption, absence) {
  const list = table(caption, [
    { name: "time", cell: (row) => moment(row.time) },
    { name: "kind", cell: (row) => row.kind },
    { name: "what happened", cell: (row) => row.text, isLong: true },
  ], (row) => row.number, { empty: absence === null ? "No event has happened since the start of the broker." : `No events are shown: ${absence}.` });
  return { node: list.node, show: (rows) => list.show(rows.toSorted((a, b) => b.number - a.number).slice(0, MOST_ROWS)) };
}

// The time line is as wide as the page, and its texts have the same size on a phone and on a large screen.
function timeLine() {
  const marks = svg("g");
  const first = svg("text", { x: LEFT, y: KINDS.length * ROW + 18 });
  const last = svg("text", { x: "100%", dx: -RIGHT, y: KINDS.length * ROW + 18, "text-anchor": "end" });
  const rows = KINDS.flatMap((kind, n) => [
    svg("text", { x: 4, y: n * ROW + 18 }, kind),
    svg("line", { x1: LEFT, x2: "100%", y1: n * ROW + 14, y2: n * ROW + 14, class: "base" }),
  ]);
  const node = svg("svg", { height: KINDS.length * ROW + 28, role: "img", class: "timeline" }, rows, marks, first, last);
  let shown = [], now = 0;
  new ResizeObserver(() => draw()).observe(node);

  function draw() {
    const start = Math.min(...shown.map((it) => it.time), now - 1000);
    const x = (at) => LEFT + 4 + (Math.max(0, node.clientWidth - LEFT - RIGHT - 4) * (at - start)) / (now - start);
    reconcile(marks, shown, (it) => it.number,
      (it) => svg("circle", { r: 5, cy: KINDS.indexOf(it.kind) * ROW + 14, class: `kind-${it.kind}` }, svg("title", {}, `${time(it.time)} ${it.text}`)),
      (mark, it) => setAttribute(mark, "cx", x(it.time).toFixed(1)));
    setText(first, clock(start));
    setText(last, clock(now));
    node.setAttribute("aria-label", `Time line of ${count(shown.length, "event")}; the table below contains the last of them.`);
  }
  return { node, update: (all, time) => { shown = all; now = time; draw(); } };
}
