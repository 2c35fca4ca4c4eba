// The page: it shows one view at a time, and draws this view again after each change of the broker's state.
//
// The hash of the address names the view, for example #/partition/orders/0, so each view has a link. A view is a
// function `view(main, store, ...words)`. It builds its elements inside `main`, and returns a function that writes the
// current numbers into them. The page calls this function at most once a frame, and at most ten times a second.

import { el, setText } from "./dom.js";
import { Store } from "./store.js";
import { topics } from "./topics.js";
import { topic } from "./topic.js";
import { partition } from "./partition.js";
import { batch, fetchedBatch } from "./batch.js";
import { lookUp } from "./look-up.js";
import { group, groups } from "./groups.js";
import { request, requests } from "./requests.js";
import { clients } from "./clients.js";
import { events } from "./events.js";
import { count } from "./texts.js";

const VIEWS = {
  topics, topic, partition, batch, "fetched-batch": fetchedBatch, "look-up": lookUp, groups, group, requests, request, clients, events,
};
const MENU = { topics: "Topics", "look-up": "Look-up", groups: "Groups", requests: "Requests", clients: "Clients", events: "Events" };
const MENU_OF = { topic: "topics", partition: "topics", batch: "topics", "fetched-batch": "topics", group: "groups", request: "requests" };
const CONNECTION = {
  connecting: "connecting",
  live: "live",
  paused: "paused",
  away: "the broker is away, trying again",
  refused: "the broker refuses this page; reload it to log in, or open the link that the broker printed",
};
const FRAME = 100; // ms between two drawings

const byId = (id) => document.getElementById(id);
const main = byId("view");
let update = () => {};
let leave = () => {};
let timer = null;
let connection = "connecting";

const store = new Store(draw, (state) => {
  connection = state;
  showConnection();
});

function showConnection() {
  const shown = connection === "live" && store.isPaused ? "paused" : connection;
  const waiting = shown === "paused" && store.waiting.length ? `, ${count(store.waiting.length, "change waits", "changes wait")}` : "";
  setText(byId("connection"), CONNECTION[shown] + waiting);
  byId("connection").className = shown;
  byId("step").disabled = !store.isPaused;
}

// Draw soon. Several changes until then cause only one drawing.
function draw() {
  timer ??= setTimeout(() => requestAnimationFrame(drawNow), FRAME);
}

function drawNow() {
  timer = null;
  const broker = store.get("broker");
  if (broker === null) return;
  setText(byId("broker"), [broker.addresses.join(", "), broker.version ?? "read through its APIs", broker.user].filter((text) => text !== null).join(" · "));
  byId("logout").hidden = broker.user === null;
  if (update === null) show();
  else update();
}

// Show the view that the address names.
function show() {
  const words = location.hash.replace(/^#\/?/, "").split("/").map(decoded);
  const name = Object.hasOwn(VIEWS, words[0]) ? words[0] : "topics";
  const focused = document.activeElement === document.body || main.contains(document.activeElement);
  leave();
  leave = () => {};
  main.replaceChildren();
  if (store.get("broker") === null) {
    update = null; // The first state has not arrived yet. `drawNow` shows the view then.
    main.append(el("p", {}, "Waiting for the broker."));
    return;
  }
  update = VIEWS[name](main, store, ...words.slice(1)) ?? (() => {});
  leave = update.leave ?? leave;
  update();
  document.title = `HMB: ${main.querySelector("h1")?.textContent ?? name}`;
  for (const each of byId("views").children) {
    if (each.dataset.view === (MENU_OF[name] ?? name)) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  }
  if (focused) main.focus({ preventScroll: true });
  scrollTo(0, 0);
}

// A hand-written address can contain a wrong escape.
function decoded(word) {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}

function pause(isPaused) {
  store.pause(isPaused);
  byId("pause").setAttribute("aria-pressed", isPaused);
  setText(byId("pause"), isPaused ? "Go on" : "Pause");
  showConnection();
}

function step() {
  store.step();
  showConnection();
}

byId("pause").addEventListener("click", () => pause(!store.isPaused));
byId("step").addEventListener("click", step);
byId("logout").addEventListener("click", () => fetch("/logout", { method: "POST" }).then(() => location.reload()));
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
byId("views").append(...Object.entries(MENU).map(([name, text]) => el("a", { href: `#/${name}`, "data-view": name }, text)));
addEventListener("hashchange", show);
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
  if (event.key === "p") pause(!store.isPaused);
  if (event.key === "s" && store.isPaused) step();
});
show();
