// The views "groups" and "group": members, positions, lag over the last minutes, and the state machine.

import { el, link, setText, svg, table } from "./dom.js";
import { eventList } from "./events.js";
import { machine } from "./machine.js";
import { read } from "./store.js";
import { clock, count, duration, number } from "./texts.js";

const lagOf = (part) => part.positions.reduce((sum, it) => sum + (it.lag ?? 0), 0);

export function groups(main, store) {
  const list = table("Groups", [
    { name: "group", cell: (row) => link(row.group_id, "group", row.group_id), isLong: true },
    { name: "lag", cell: (row) => number(lagOf(row)), isNumber: true },
    { name: "lag in time", cell: (row) => (store.absence("lag_ms") === null ? duration(Math.max(0, ...row.positions.map((it) => it.lag_ms ?? 0))) : "–"), isNumber: true },
    { name: "state", cell: (row) => row.state },
    { name: "members", cell: (row) => number(row.members.length), isNumber: true },
    { name: "partitions", cell: (row) => number(row.positions.length), isNumber: true },
    { name: "protocol", cell: (row) => row.type },
  ], (row) => row.group_id, { empty: "No group exists. A consumer with a group id creates one." });
  main.append(el("h1", {}, "Groups"), list.node);
  return () => list.show(store.all("group").map(({ part }) => part).sort((a, b) => lagOf(b) - lagOf(a)));
}

export function group(main, store, id) {
  const gone = el("p", { class: "problem", role: "alert", hidden: true });
  const headline = el("p", { class: "headline", role: "status" });
  const members = memberTable(store);
  const positions = positionTable();
  const chart = lagChart();
  const picture = machine();
  const happened = eventList("Events of this group since the start of the broker", store.absence("events"));
  main.append(el("nav", { class: "path", "aria-label": "Path" }, link("Groups", "groups")), el("h1", {}, id), gone, headline,
    el("div", { class: "columns" }, picture.node, chart.node), members.node, positions.node, happened.node);
  let machines = null;
  read("/group-states", {}).then((view) => { machines = view; update(); }, () => {});

  function update() {
    const part = store.get("group", id);
    gone.hidden = part !== null;
    setText(gone, part === null ? store.missing(id, "group", id) : "");
    if (part === null) return;
    setText(headline, `${part.state}, ${part.type} protocol, ${count(part.members.length, "member")}, lag ${number(lagOf(part))}`);
    members.show(part.members);
    positions.show(part.positions.map((it) => ({ ...it, member: ownersOf(part, `${it.topic}-${it.partition}`) })));
    chart.update(part.lags, lagOf(part), store.get("broker").time);
    if (machines !== null && machines[part.type] !== undefined) picture.update(machines[part.type], part.state);
    happened.show(store.all("event").map((it) => it.part).filter((it) => it.kind === "group" && it.text.startsWith(`group ${id}: `)));
  }
  return update;
}

function memberTable(store) {
  const sinceHeartbeat = ({ last_heartbeat: heard }) => (heard === null ? null : `${duration(Math.max(0, store.get("broker").time - heard))} ago`);
  return table("Members", [
    { name: "client id", cell: (row) => row.client_id, isLong: true },
    { name: "assignment", cell: (row) => row.partitions.join(", ") || "no partition", isLong: true },
    { name: "host", cell: (row) => row.client_host },
    { name: "last heartbeat", cell: sinceHeartbeat, isNumber: true },
    { name: "instance id", cell: (row) => row.instance_id },
    { name: "member id", cell: (row) => row.member_id, isLong: true },
  ], (row) => row.member_id, { empty: "The group has no members." });
}

// The client ids of the members to which a partition is assigned. Several members of a share group can have a partition.
const ownersOf = (part, partition) => part.members.filter((it) => it.partitions.includes(partition)).map((it) => it.client_id).join(", ");

function positionTable() {
  return table("Committed offsets", [
    { name: "partition", cell: (row) => link(`${row.topic}-${row.partition}`, "partition", row.topic, row.partition) },
    { name: "committed offset", cell: (row) => link(number(row.committed_offset), "look-up", row.topic, row.partition, "offset", row.committed_offset), isNumber: true },
    { name: "lag", cell: (row) => number(row.lag), isNumber: true },
    { name: "lag in time", cell: (row) => duration(row.lag_ms), isNumber: true },
    { name: "member", cell: (row) => row.member || "no member", isLong: true },
  ], (row) => `${row.topic} ${row.partition}`, { empty: "The group has committed no offset." });
}

// The lag of the group over the last minutes, from the samples of the broker and the present lag.
function lagChart() {
  const WIDTH = 360, HEIGHT = 150, LEFT = 8, TOP = 26, BOTTOM = 22;
  const line = svg("polyline", { class: "line" });
  const greatest = svg("text", { x: LEFT, y: 13 });
  const first = svg("text", { x: LEFT, y: HEIGHT - 5 });
  const last = svg("text", { x: WIDTH - 8, y: HEIGHT - 5, "text-anchor": "end" });
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "chart" },
    svg("line", { x1: LEFT, x2: WIDTH - 8, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM, class: "base" }), line, greatest, first, last);
  const node = el("figure", {}, el("figcaption", {}, "Lag over the last five minutes"), drawing);

  function update(lags, lag, now) {
    const samples = [...lags, [now, lag]];
    const most = Math.max(1, ...samples.map((it) => it[1]));
    const start = Math.min(samples[0][0], now - 60_000);
    const x = (at) => LEFT + ((WIDTH - LEFT - 8) * (at - start)) / (now - start);
    const y = (value) => HEIGHT - BOTTOM - ((HEIGHT - BOTTOM - TOP) * value) / most;
    line.setAttribute("points", samples.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(" "));
    setText(greatest, `greatest: ${number(Math.max(...samples.map((it) => it[1])))}`);
    setText(first, clock(start));
    setText(last, clock(now));
    drawing.setAttribute("aria-label", `The lag was at most ${count(most, "record")}, and is now ${count(lag, "record")}.`);
  }
  return { node, update };
}
