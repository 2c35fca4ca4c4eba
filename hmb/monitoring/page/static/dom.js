// Helpers that make and change elements of the page.
//
// Names, keys and values come from clients, and they can contain markup. So every text goes through `textContent` or
// `setAttribute`, which never interpret markup. No script of this page uses `innerHTML`.

import { time } from "./texts.js";

const SVG = "http://www.w3.org/2000/svg";

// Make an element. `attributes` contains values of attributes, and functions with names such as "onclick". Children are
// elements or texts; a null child is left out.
export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

// Make an element of a drawing (SVG).
export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

// Change the text of an element only if it differs. A change would otherwise end the user's selection of this text.
export function setText(node, text) {
  const wanted = String(text);
  if (node.textContent !== wanted) node.textContent = wanted;
}

export function setAttribute(node, name, value) {
  const wanted = String(value);
  if (node.getAttribute(name) !== wanted) node.setAttribute(name, wanted);
}

// Give an element a position and a width, in percent of its parent. The policy of the page forbids the attribute
// `style`, but it allows these properties. Reading a property of a style is slow, so the element remembers its place.
export function place(node, start, width = null) {
  if (node.start === start && node.share === width) return;
  Object.assign(node, { start, share: width });
  node.style.left = `${start.toFixed(3)}%`;
  node.style.width = width === null ? "" : `${width.toFixed(3)}%`;
}

// Put an element into layer `n` of `layers` layers, from top to bottom. The layers divide the height of the parent.
export function stack(node, n, layers) {
  if (node.layer === n && node.layers === layers) return;
  Object.assign(node, { layer: n, layers });
  node.style.top = `${((100 * n) / layers).toFixed(3)}%`;
  node.style.height = `${(100 / layers).toFixed(3)}%`;
}

// Return whether two lists, or two objects, have equal items. The function does not look into items that are objects.
export function isSame(one, other) {
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name]);
}

// Make the children of `parent` match `items`. `key` identifies an item, `create` makes its element, and `update`
// writes the current numbers into the element. Elements of items that stay are kept, so focus and scrolling stay too.
export function reconcile(parent, items, key, create, update = () => {}) {
  const existing = parent.keyed ?? (parent.keyed = new Map());
  const wanted = new Set();
  let previous = null;
  for (const item of items) {
    const id = key(item);
    wanted.add(id);
    let node = existing.get(id);
    if (node === undefined) existing.set(id, (node = create(item)));
    update(node, item);
    const after = previous === null ? parent.firstChild : previous.nextSibling;
    if (after !== node) parent.insertBefore(node, after);
    previous = node;
  }
  for (const [id, node] of existing) {
    if (!wanted.has(id)) {
      node.remove();
      existing.delete(id);
    }
  }
}

// Make a table whose rows can change. `columns` is a list of {name, cell, isNumber, isLong}; `cell(row)` returns a text
// or an element. A long cell has several lines, all others have one line. `table` returns the element, and a function
// that shows rows. A row that has not changed since the last call is not drawn again, so `cell` uses nothing but the row.
export function table(caption, columns, key, { empty = "none" } = {}) {
  const body = el("tbody");
  const note = el("p", { class: "empty", hidden: true }, empty);
  const head = el("tr", {}, columns.map((it) => el("th", { scope: "col", class: it.isNumber ? "number" : null }, it.name)));
  const node = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", {}, el("caption", {}, el("span", {}, caption)), el("thead", {}, head), body), note);
  const show = (rows) => {
    note.hidden = rows.length > 0;
    reconcile(body, rows, key,
      () => el("tr", {}, columns.map((it) => el("td", { class: it.isNumber ? "number" : it.isLong ? "long" : null }))),
      (tr, row) => {
        if (tr.shown !== undefined && isSame(tr.shown, row)) return;
        tr.shown = row;
        columns.forEach((column, n) => setCell(tr.children[n], column.cell(row)));
      });
  };
  return { node, show };
}

// Links are made again only if they change, because a user may be about to press them.
function setCell(td, content) {
  if (!(content instanceof Node)) {
    setText(td, content ?? "–");
  } else if (!td.firstChild || !td.firstChild.isEqualNode(content)) {
    td.replaceChildren(content);
  }
}

// A field with which the user filters the rows of a table. `matches` returns whether a text contains the user's text.
export function filterField(update) {
  const input = el("input", { type: "search", id: "filter", oninput: update });
  const matches = (...texts) => texts.some((text) => String(text ?? "").toLowerCase().includes(input.value.toLowerCase()));
  return { nodes: [el("label", { for: "filter" }, "Filter "), input], matches };
}

// A time in a table. On a narrow screen, the style hides the date and the zone, so that the other columns have space.
export function moment(ms) {
  const text = time(ms);
  const [date, hours] = text.split("T");
  if (hours === undefined) return text;
  return el("time", { datetime: text, title: text },
    el("span", { class: "date" }, `${date}T`), hours.slice(0, -1), el("span", { class: "date" }, "Z"));
}

export function link(text, ...route) {
  return el("a", { href: `#/${route.map(encodeURIComponent).join("/")}` }, text);
}
