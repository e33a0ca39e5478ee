"use strict";
// What the page holds: arrays with named axes, and what a picture takes of them.

const page = JSON.parse(document.getElementById("data").textContent);
const element = (id) => document.getElementById(id);
const TOKENS = ["source", "target", "query", "key"];

function make(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

const unpacked = new Map();

function numbers(name) {
  if (!unpacked.has(name)) unpacked.set(name, unpack(page.arrays[name]));
  return unpacked.get(name);
}

async function unpack(array) {
  const packed = Uint8Array.from(atob(array.numbers), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const count = bytes.length / 2;
  const values = new Float64Array(count);
  const unit = 10 ** -array.decimals;
  for (let i = 0; i < count; i++) values[i] = (((bytes[count + i] << 24) >> 16) | bytes[i]) * unit;
  return values;
}

function shown(value, decimals) {
  return value.toFixed(Math.max(0, decimals));
}

// The positions of each word's subwords.
function words(labels) {
  const marked = labels.some((label) => label.startsWith("▁"));
  const groups = [];
  labels.forEach((label, i) => {
    const last = labels[i - 1];
    const goesOn = i > 0 && (marked ? !/^((<unk>:)?▁|<\/?\w+>$)/.test(label) : last.endsWith("@@"));
    if (goesOn) groups[groups.length - 1].push(i);
    else groups.push([i]);
  });
  return groups;
}

function apart(labels) {
  return labels.map((_, i) => [i]);
}

function word(labels, group) {
  return group.map((i) => labels[i].replace(/^(<unk>:)?▁|@@$/g, "$1")).join("");
}

// A panel's numbers, [rows][columns] of one long array; null where the array has no such layer.
async function picture(panel, { places, joined }) {
  const array = page.arrays[panel.array];
  const at = { ...places, ...Object.fromEntries(panel.at) };
  const strides = array.shape.map((_, i) => array.shape.slice(i + 1).reduce((product, size) => product * size, 1));
  const sides = { [panel.rows]: null, [panel.columns]: null };
  let start = 0;
  for (const [i, [axis, labels]] of array.axes.entries()) {
    if (axis in sides) {
      const whole = joined && TOKENS.includes(axis);
      const groups = whole ? words(labels) : apart(labels);
      const shownLabels = whole ? groups.map((group) => word(labels, group)) : labels;
      sides[axis] = { axis, groups, stride: strides[i], labels: shownLabels };
    } else {
      if (!labels.includes(at[axis])) return null;
      start += labels.indexOf(at[axis]) * strides[i];
    }
  }
  const rows = sides[panel.rows];
  const columns = sides[panel.columns] || { axis: null, groups: [[0]], stride: 0, labels: [""] };
  const values = await numbers(panel.array);
  const share = (side, group) => (panel.summed.includes(side.axis) ? 1 : group.length);
  const taken = [];
  for (const row of rows.groups) {
    for (const column of columns.groups) {
      let sum = 0;
      for (const r of row) for (const c of column) sum += values[start + r * rows.stride + c * columns.stride];
      taken.push(sum / share(rows, row) / share(columns, column));
    }
  }
  return { panel, rows, columns, values: taken, decimals: array.decimals };
}
