// The state of the broker in the browser: a map of parts, which the feed keeps up to date.
//
// The feed (feed.py) sends all parts once, and then only the changed parts. The key of a part is a list, for example
// ["partition", "orders", 0]. The store sorts the parts by the first word of their keys, and calls `changed` after each
// event. While the user pauses, the events wait in a queue, and `step` applies one of them.

const MOST_WAITING = 400; // events; if a pause takes longer, the oldest waiting events are applied
const NAMED = new Set(["topic", "partition", "group"]); // the kinds of parts that an address can name

export class Store {
  constructor(changed, connected) {
    this.kinds = new Map();
    this.seen = new Set(); // the keys of all topics, partitions and groups that existed while the page was open
    this.isPaused = false;
    this.waiting = [];
    this.changed = changed;
    this.connected = connected;
    this.version = 0;
    this.connect();
  }

  connect() {
    const source = new EventSource("/changes");
    source.addEventListener("state", (event) => this.receive("state", event.data));
    source.addEventListener("change", (event) => this.receive("change", event.data));
    source.addEventListener("error", () => this.lost(source));
  }

  // After a lost connection, the browser tries again by itself. After a response that is no stream, the browser gives
  // up, for example if another program now uses the port. In this case, this method tries again.
  async lost(source) {
    this.connected("away");
    if (source.readyState !== EventSource.CLOSED) return;
    const answer = await fetch("/state").then((response) => response.status, () => 0);
    if (answer === 401) this.connected("refused");
    setTimeout(() => this.connect(), 2000);
  }

  // The connection is live only when a state has arrived. The page of another broker also accepts connections while this
  // broker is away.
  receive(kind, data) {
    const event = { kind, ...JSON.parse(data) };
    if (kind === "state") this.connected("live");
    if (!this.isPaused) {
      this.apply(event);
      return;
    }
    if (kind === "state") this.waiting = [];
    this.waiting.push(event);
    if (this.waiting.length > MOST_WAITING) this.apply(this.waiting.shift());
    this.connected("live");
  }

  apply(event) {
    if (event.kind === "state") this.kinds.clear();
    for (const [key, part] of event.set) {
      this.of(key[0]).set(idOf(key), { key, part });
      if (NAMED.has(key[0])) this.seen.add(JSON.stringify(key));
    }
    for (const key of event.gone) this.of(key[0]).delete(idOf(key));
    this.version = event.version;
    this.changed();
  }

  of(kind) {
    if (!this.kinds.has(kind)) this.kinds.set(kind, new Map());
    return this.kinds.get(kind);
  }

  // All parts of a kind, each with the words of its key.
  all(kind) {
    return [...this.of(kind).values()];
  }

  get(...key) {
    return this.of(key[0]).get(idOf(key))?.part ?? null;
  }

  // The reason why `get` finds no part with this key: the part has been deleted, or it has never existed.
  missing(name, ...key) {
    return this.seen.has(JSON.stringify(key)) ? `The ${key[0]} ${name} does not exist any more.` : `No such ${key[0]}: ${name}`;
  }

  pause(isPaused) {
    this.isPaused = isPaused;
    while (!isPaused && this.waiting.length) this.apply(this.waiting.shift());
  }

  step() {
    if (this.waiting.length) this.apply(this.waiting.shift());
  }

  // The reason why the state does not contain a part, or null if it contains the part. For example, the APIs of a
  // broker do not report segments.
  absence(part) {
    return this.get("broker").missing[part] ?? null;
  }

  partitions(topic) {
    return this.all("partition").filter((it) => it.key[1] === topic).sort((a, b) => a.key[2] - b.key[2]);
  }

  segments(topic, partition) {
    return this.all("segment").filter((it) => it.key[1] === topic && it.key[2] === partition)
      .sort((a, b) => a.key[3] - b.key[3]).map((it) => it.part);
  }

  // The positions of all groups in a topic: a map from the number of a partition to a list.
  positions(topic) {
    return Map.groupBy(this.all("group").flatMap(({ part }) => part.positions
      .filter((it) => it.topic === topic).map((it) => ({ group: part.group_id, ...it }))), (it) => it.partition);
  }
}

const idOf = (key) => JSON.stringify(key.slice(1));

// Read JSON from the broker. The error of a refused request contains the broker's reason.
export async function read(path, parameters) {
  const response = await fetch(`${path}?${new URLSearchParams(parameters)}`);
  const body = await response.json();
  if (!response.ok) throw new Error(body.error);
  return body;
}
