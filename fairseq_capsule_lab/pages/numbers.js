// The arrays of the page, with named axes, and the slices of them that pictures show.

const page = JSON.parse(document.getElementById("data").textContent);
const TOKENS = ["source", "target", "query", "key"];

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

// Without spaces, the pieces of a sentence are one word.
function isOneWord(labels) {
  const pieces = labels.filter((label) => !/^<\/?\w+>$/.test(label));
  return pieces.length > 1 && words(pieces).length === 1;
}

function apart(labels) {
  return labels.map((_, i) => [i]);
}

function word(labels, group) {
  return group.map((i) => labels[i].replace(/^(<unk>:)?▁|@@$/g, "$1")).join("");
}

// The numbers of a panel, [rows][columns] of one flat array; null if the array does not have the layer.
async function picture(panel, state) {
  if (panel.difference) return difference(panel, state);
  const { places, joined } = state;
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

// The axis with all labels shown side by side, or undefined.
function spreadOf(panel) {
  if (panel.difference) return undefined;
  const axes = page.arrays[panel.array].axes.map(([axis]) => axis);
  const own = [panel.rows, panel.columns, ...panel.at.map(([axis]) => axis)];
  return page.spread.find((axis) => axes.includes(axis) && !own.includes(axis));
}

function labelsOf(panel, axis) {
  return Object.fromEntries(page.arrays[panel.array].axes)[axis];
}

// A picture for every label along an axis.
async function along(panel, axis, state) {
  const labels = labelsOf(panel, axis);
  const found = labels.map((label) => picture(panel, { ...state, places: { ...state.places, [axis]: label } }));
  return (await Promise.all(found)).filter(Boolean);
}

// This model minus the other, each averaged over its heads; null if one of them does not have the layer.
async function difference(panel, state) {
  const mean = async (array) => {
    const side = { ...panel, array, difference: false };
    const heads = labelsOf(side, "head") ? await along(side, "head", state) : [await picture(side, state)];
    if (!heads[0]) return null;
    const values = heads[0].values.map((_, i) => heads.reduce((sum, { values }) => sum + values[i], 0) / heads.length);
    return { ...heads[0], values };
  };
  const [own, other] = await Promise.all([mean(panel.array), mean("against." + panel.array)]);
  if (!own || !other) return null;
  const values = own.values.map((value, i) => value - other.values[i]);
  return { ...own, panel, values, decimals: Math.min(own.decimals, other.decimals) };
}
