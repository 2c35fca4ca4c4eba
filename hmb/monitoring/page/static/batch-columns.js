// The columns that every table of batches has.

import { moment } from "./dom.js";
import { number } from "./texts.js";

export const BATCH_COLUMNS = [
  { name: "records", cell: (row) => number(row.records), isNumber: true },
  { name: "bytes", cell: (row) => number(row.bytes), isNumber: true },
  { name: "codec", cell: (row) => row.codec },
  { name: "producer", cell: (row) => (row.producer_id < 0 ? "–" : String(row.producer_id)), isNumber: true },
  { name: "kind", cell: kindOf },
  { name: "greatest timestamp", cell: (row) => moment(row.max_timestamp) },
];

function kindOf(row) {
  if (row.is_control) return "end of a transaction";
  return row.is_transactional ? "transactional" : "";
}
