// The views "requests" and "request": the rates of each API, single requests, and the functions that one request calls.
//
// The broker records single requests only while this view asks for them, once a second (GET /requests).

import { el, link, moment, setText, table } from "./dom.js";
import { read } from "./store.js";
import { duration, number, rate, size, time } from "./texts.js";

const ASK = 1000; // ms between two questions to the broker

export function requests(main, store) {
  const absence = store.absence("requests");
  if (absence !== null) {
    main.append(el("h1", {}, "Requests"), el("p", { class: "note" }, `No requests are shown: ${absence}.`));
    return null;
  }
  const apis = table("APIs since the start of the broker", [
    { name: "API", cell: (row) => row.api },
    { name: "requests", cell: (row) => number(row.count), isNumber: true },
    { name: "rate (last minute)", cell: (row) => rate(row.requests_per_s), isNumber: true },
    { name: "p50", cell: (row) => duration(row.p50_ms), isNumber: true },
    { name: "p99", cell: (row) => duration(row.p99_ms), isNumber: true },
    { name: "errors", cell: (row) => number(row.errors), isNumber: true },
    { name: "record bytes", cell: (row) => size(row.record_bytes), isNumber: true },
  ], (row) => row.api);
  const slowest = requestTable("Slowest requests since this view was opened");
  const intro = el("p", { class: "note" }, "The broker records single requests only while this view is open. The three lists below therefore begin empty, and fill with the requests that arrive from now on.");
  const single = store.absence("single requests");
  const followed = requestTable("Followed requests: one of each API every two seconds, with its way through the code");
  const recent = requestTable("Last requests: the first five of each second, and each one that is followed or slow");
  const problem = el("p", { class: "problem", hidden: true });
  main.append(el("h1", {}, "Requests"), apis.node, problem, ...(single === null ? [intro, followed.node, slowest.node, recent.node]
    : [el("p", { class: "note" }, `The broker does not show individual requests: ${single}.`)]));
  let timer = null, isOpen = true;

  async function ask() {
    try {
      const view = store.isPaused ? null : await read("/requests", {});
      problem.hidden = true;
      if (view !== null) {
        followed.show(view.followed);
        slowest.show(view.slowest);
        recent.show(view.recent);
      }
    } catch (error) {
      problem.hidden = false;
      setText(problem, `The broker does not answer: ${error.message}`);
    }
    if (isOpen) timer = setTimeout(ask, ASK);
  }
  if (single === null) ask();
  const update = () => apis.show(store.all("api").map((it) => it.part).sort((a, b) => b.count - a.count));
  return Object.assign(update, { leave: () => { isOpen = false; clearTimeout(timer); } });
}

function requestTable(caption) {
  return table(caption, [
    { name: "request", cell: (row) => link(`${row.api} v${row.version}`, "request", row.number) },
    { name: "client id", cell: (row) => row.client_id, isLong: true },
    { name: "time", cell: (row) => moment(row.time) },
    { name: "took", cell: (row) => duration(row.ms), isNumber: true },
    { name: "contains", cell: (row) => row.note },
    { name: "errors", cell: (row) => row.errors.join(", ") },
    { name: "way", cell: (row) => (row.has_way ? "followed" : "") },
  ], (row) => row.number, { empty: "No request has arrived since this view was opened." });
}

export function request(main, store, wanted) {
  const problem = el("p", { class: "problem", role: "alert", hidden: true });
  const content = el("div");
  main.append(el("nav", { class: "path", "aria-label": "Path" }, link("Requests", "requests")), el("h1", {}, `Request ${wanted}`), problem, content);
  read("/request", { number: wanted }).then((view) => show(content, view), (error) => {
    problem.hidden = false;
    setText(problem, error.message);
  });
}

function show(content, view) {
  const errors = view.errors.length ? `, errors: ${view.errors.join(", ")}` : "";
  content.append(
    el("p", { class: "headline" }, `${view.api} version ${view.version} of client ${view.client_id ?? "without id"} (${view.client}), ${time(view.time)}, took ${duration(view.ms)}${errors}`),
    el("div", { class: "columns" }, fieldTable("Fields of the request", view.request),
      view.response === null ? el("p", {}, "The client wants no response.") : fieldTable("Fields of the response", view.response)),
    el("h2", {}, "Way through the code"),
    view.way === null
      ? el("p", { class: "note" }, "The recorder has not followed this request. Open one of the followed requests.")
      : el("ol", { class: "way" }, view.way.map((call) => step(call))),
    view.way?.length >= view.steps ? el("p", { class: "note" }, `Only the first ${view.steps} calls are shown.`) : "");
}

// One call. The indentation shows its depth.
function step([depth, file, name]) {
  const item = el("li", {}, el("code", {}, name), " ", el("span", { class: "note" }, `hmb/${file}`));
  item.style.marginLeft = `${Math.min(depth, 25) * 0.6}em`;
  return item;
}

function fieldTable(caption, fields) {
  const list = table(caption, [
    { name: "field", cell: (row) => el("span", {}, row[0].split(".").flatMap((word, n) => (n ? [".", el("wbr"), word] : [word]))), isLong: true },
    { name: "value", cell: (row) => row[1], isLong: true },
  ], (row) => row[0], { empty: "no fields" });
  list.show(fields);
  return list.node;
}
