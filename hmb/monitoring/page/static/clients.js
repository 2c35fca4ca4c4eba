// The view "clients": one row for each connection, and the transactions that the broker knows.

import { el, filterField, table } from "./dom.js";
import { duration, number } from "./texts.js";

export function clients(main, store) {
  const absence = store.absence("connections");
  const filter = filterField(() => update());
  const connections = table("Connections", [
    { name: "client", cell: (row) => row.client },
    { name: "client id", cell: (row) => row.client_id, isLong: true },
    { name: "library", cell: (row) => row.software },
    { name: "last API", cell: (row) => row.last_api },
    { name: "codec of the last batch", cell: (row) => row.codec },
    { name: "producer id", cell: (row) => (row.producer_id === null ? null : String(row.producer_id)), isNumber: true },
    { name: "requests (of this connection)", cell: (row) => number(row.requests), isNumber: true },
  ], (row) => row.client, { empty: absence === null ? "No client is connected." : `No connections are shown: ${absence}.` });
  const transactions = table("Transactional producers", [
    { name: "transactional id", cell: (row) => row.transactional_id, isLong: true },
    { name: "producer id", cell: (row) => String(row.producer_id), isNumber: true },
    { name: "epoch", cell: (row) => String(row.epoch), isNumber: true },
    { name: "state", cell: (row) => row.state },
    { name: "open since", cell: (row) => (row.started === null ? "–" : duration(row.now - row.started)), isNumber: true },
    { name: "partitions", cell: (row) => row.partitions.join(", "), isLong: true },
  ], (row) => row.transactional_id, { empty: "No producer uses transactions." });
  main.append(el("h1", {}, "Clients"), el("p", { class: "form" }, filter.nodes), connections.node, transactions.node);

  // Connections that have produced come first, so that their codecs are easy to find. One client's connections are together.
  function update() {
    const found = store.all("connection").map((it) => it.part)
      .filter((it) => filter.matches(it.client, it.client_id, it.software, it.last_api, it.codec));
    connections.show(found.sort((a, b) => (a.codec === null) - (b.codec === null)
      || (a.client_id ?? "").localeCompare(b.client_id ?? "") || a.client.localeCompare(b.client)));
    const now = store.get("broker").time;
    transactions.show(store.all("transaction").map((it) => ({ ...it.part, now })));
  }
  return update;
}
