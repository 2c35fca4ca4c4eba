// A state machine as a picture: its states in a column, its transitions as arrows, and the present state marked.
//
// The states and the transitions come from the tables that drive the groups in the broker (hmb/state_table.py). The
// state of a KIP-848 group is derived from its members and epochs, so its picture has states, but no arrows.

import { el, svg } from "./dom.js";

const WIDTH = 170, HEIGHT = 30, GAP = 22, LANE = 17;

export function machine() {
  const node = el("figure", {}, el("figcaption", {}, "State of the group"));
  let drawn = "";

  function update(table, present) {
    const id = JSON.stringify([table.states, present]);
    if (id === drawn) return;
    drawn = id;
    const steps = table.transitions.map(([before, event, after], n) => `${n + 1}. ${before} → ${after}: ${event}`);
    node.replaceChildren(node.firstChild, picture(table, present),
      steps.length ? el("details", {}, el("summary", {}, "Transitions"), el("ul", { class: "plain" }, steps.map((step) => el("li", {}, step)))) : "");
  }
  return { node, update };
}

function picture({ states, transitions }, present) {
  const arrows = transitions.map(([before, , after], n) => ({ n: n + 1, before: states.indexOf(before), after: states.indexOf(after) }));
  const down = arrows.filter((it) => it.after > it.before + 1).sort((a, b) => a.after - a.before - (b.after - b.before));
  const up = arrows.filter((it) => it.after <= it.before).sort((a, b) => a.before - a.after - (b.before - b.after));
  const left = (up.length + 1) * LANE;
  const width = left + WIDTH + (down.length + 1) * LANE + 10;
  const top = (state) => state * (HEIGHT + GAP) + 6;
  const height = states.length * (HEIGHT + GAP);
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, width: width * 1.2, role: "img", class: "machine", "aria-label": `The group is in the state ${present}. The states are ${states.join(", ")}.` });
  states.forEach((state, n) => drawing.append(
    svg("rect", { x: left, y: top(n), width: WIDTH, height: HEIGHT, rx: 6, class: state === present ? "state present" : "state" }),
    svg("text", { x: left + WIDTH / 2, y: top(n) + 20, "text-anchor": "middle", class: state === present ? "present" : "" }, state)));
  for (const it of arrows.filter((each) => each.after === each.before + 1)) {
    arrow(drawing, it.n, [[left + WIDTH / 2, top(it.before) + HEIGHT], [left + WIDTH / 2, top(it.after)]], [left + WIDTH / 2 + 5, top(it.after) - 7]);
  }
  down.forEach((it, n) => around(drawing, it, left + WIDTH, left + WIDTH + (n + 1) * LANE, top, 6));
  up.forEach((it, n) => around(drawing, it, left, left - (n + 1) * LANE, top, -6));
  return drawing;
}

function around(drawing, it, edge, out, top, shift) {
  const y = (state) => top(state) + HEIGHT / 2;
  const start = y(it.before) + shift, end = y(it.after) - shift;
  arrow(drawing, it.n, [[edge, start], [out, start], [out, end], [edge, end]], [out + 2, (start + end) / 2 + 4]);
}

function arrow(drawing, n, points, [x, y]) {
  const [ax, ay] = points.at(-2), [bx, by] = points.at(-1);
  const angle = Math.atan2(by - ay, bx - ax);
  const corner = (turn) => `${(bx - 7 * Math.cos(angle + turn)).toFixed(1)},${(by - 7 * Math.sin(angle + turn)).toFixed(1)}`;
  drawing.append(svg("polyline", { points: points.map((point) => point.join()).join(" "), class: "arrow" }),
    svg("polygon", { points: `${bx},${by} ${corner(0.4)} ${corner(-0.4)}`, class: "head" }), svg("text", { x, y, class: "label" }, n));
}
