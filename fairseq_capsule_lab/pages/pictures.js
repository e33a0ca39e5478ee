// Pictures of numbers: heat maps and bars, with their labels, on canvases.

const FEWEST = 10; // minimum pixels of a cell with a label
const MOST = [44, 26]; // maximum width and height of a cell
const LABELLED = 200; // a side with more words has no labels
const MOST_BAR = 20; // height of a bar
const BAR = 220; // length of the longest bar, for an array with one axis
const LABEL = 160; // maximum pixels of a label
const ENTROPY = 54; // pixels for the entropies of rows (beside a picture) or columns (below it)

function bounds(pictures) {
  const highest = {};
  for (const { panel, values } of pictures) {
    highest[panel.scale] = values.reduce((most, value) => Math.max(most, Math.abs(value)), highest[panel.scale] || 0);
  }
  return (panel) => [panel.scale.startsWith("±") ? -(highest[panel.scale] || 1) : 0, highest[panel.scale] || 1];
}

// A signed number near 0 has a colour near the background.
function palette(panel) {
  if (!panel.scale.startsWith("±")) return page.colours.shares;
  return page.colours[isDark() ? "signed_on_dark" : "signed"];
}

function isDark() {
  return getComputedStyle(document.documentElement).colorScheme === "dark";
}

function colour(colours, value, [low, high]) {
  const place = Math.floor(((value - low) / (high - low)) * colours.length);
  return colours[Math.min(colours.length - 1, Math.max(0, place))];
}

// A heat map, one pixel per cell.
function pixels({ panel, rows, columns, values }, range) {
  const canvas = make("canvas", { width: columns.labels.length, height: rows.labels.length });
  const image = new ImageData(canvas.width, canvas.height);
  const colours = palette(panel);
  values.forEach((value, i) => {
    const packed = parseInt(colour(colours, value, range).slice(1), 16);
    image.data.set([packed >> 16, (packed >> 8) & 255, packed & 255, 255], 4 * i);
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

function style(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name);
}

function font(size) {
  return `${Math.min(14, Math.max(11, size - 3))}px ${getComputedStyle(document.body).fontFamily}`;
}

function longest(context, labels, size) {
  context.font = font(size);
  return Math.min(LABEL, Math.max(0, ...labels.map((label) => context.measureText(label).width)));
}

// Whether every cell of a side needs space for its label. Numbers, such as those of capsules, are not all labelled.
function areWords(labels) {
  return labels.length <= LABELLED && !labels.every((label) => /^\d*$/.test(label));
}

// Pixels of a cell's side: as many as the space allows, but at least the size of a word's label.
function cellSize(space, labels, most) {
  if (areWords(labels)) return Math.min(most, Math.max(FEWEST, Math.floor(space / labels.length)));
  return Math.min(most, space / labels.length);
}

// The step between labels: 1 if there is space, otherwise 2, 5, 10, … for numbers, and no labels for words.
function every(labels, size) {
  if (size >= FEWEST) return 1;
  if (!labels.every((label) => /^\d*$/.test(label))) return Infinity;
  return [2, 5, 10, 20, 50, 100, 200, 500].find((step) => step * size >= 2 * FEWEST) ?? Infinity;
}

// Draws a picture into its canvas, as wide as `space` if possible, and stores the places of its cells in `pictured`.
function draw(pictured, range, space) {
  const { panel, canvas, rows, columns, values, entropy } = pictured;
  const context = canvas.getContext("2d");
  const count = [columns.labels.length, rows.labels.length];
  const beside = entropy?.of === "rows" ? ENTROPY : 0;
  const below = entropy?.of === "columns" ? ENTROPY : 0;
  let height = count[1] > LABELLED ? 2 : columns.axis ? MOST[1] : MOST_BAR;
  const left = Math.ceil(longest(context, rows.labels, height)) + 6;
  const free = space - left - beside - 4;
  const width = columns.axis ? cellSize(free, columns.labels, MOST[0]) : Math.max(60, Math.min(BAR, free));
  if (columns.axis && height > FEWEST) height = Math.min(height, Math.max(16, width));
  const top = Math.max(Math.ceil(longest(context, columns.labels, width)), beside ? 14 : 0) + 6;
  const size = [left + width * count[0] + beside + 2, top + height * count[1] + below + 2];
  const scale = window.devicePixelRatio || 1;
  [canvas.width, canvas.height] = size.map((side) => Math.ceil(side * scale));
  [canvas.style.width, canvas.style.height] = size.map((side) => side + "px");
  context.scale(scale, scale);
  Object.assign(pictured, { left, top, width, height });
  drawLabels(context, pictured);
  if (columns.axis) {
    context.imageSmoothingEnabled = width * scale < 1;
    context.drawImage(pixels(pictured, range), left, top, width * count[0], height * count[1]);
    context.strokeStyle = style("--line");
    context.strokeRect(left - 0.5, top - 0.5, width * count[0] + 1, height * count[1] + 1);
  } else {
    const length = (value) => (width * (value - Math.min(0, range[0]))) / (range[1] - range[0]);
    context.fillStyle = style("--part-0");
    values.forEach((value, r) => {
      const [from, to] = [length(Math.min(0, value)), length(Math.max(0, value))];
      context.fillRect(left + from, top + r * height, Math.max(1, to - from), height - 2);
    });
  }
  if (beside || below) drawEntropy(context, pictured);
}

function isWritten(place, every) {
  return every === 1 || (place + 1) % every === 0;
}

function drawLabels(context, { rows, columns, left, top, width, height }) {
  context.fillStyle = style("--ink");
  context.textBaseline = "middle";
  context.font = font(height);
  context.textAlign = "right";
  const [down, right] = [every(rows.labels, height), every(columns.labels, width)];
  rows.labels.forEach((label, r) => {
    if (isWritten(r, down)) context.fillText(label, left - 4, top + (r + 0.5) * height, LABEL);
  });
  context.font = font(width);
  context.textAlign = "left";
  columns.labels.forEach((label, c) => {
    if (!isWritten(c, right)) return;
    context.save();
    context.translate(left + (c + 0.5) * width, top - 4);
    context.rotate(-Math.PI / 2);
    context.fillText(label, 0, 0, LABEL);
    context.restore();
  });
}

// Bars of the entropies, from the edge of the picture. Equal shares give a bar of length `ENTROPY - 10`.
function drawEntropy(context, { rows, columns, entropy, left, top, width, height }) {
  const long = ENTROPY - 10;
  const ofRows = entropy.of === "rows";
  const [x, y] = ofRows ? [left + width * columns.labels.length + 6, top] : [left, top + height * rows.labels.length + 6];
  context.fillStyle = style("--faint");
  context.font = font(0);
  context.textAlign = ofRows ? "left" : "right";
  if (ofRows) context.fillText("entropy", x, y - 8, ENTROPY - 6);
  else context.fillText("entropy", left - 4, y + long / 2, left - 4);
  entropy.found.forEach((value, i) => {
    const length = Math.max(1, long * (value ?? 0));
    if (ofRows) context.fillRect(x, y + i * height + 1, length, Math.max(1, height - 2));
    else context.fillRect(x + i * width + 1, y, Math.max(1, width - 2), length);
  });
  context.strokeStyle = style("--line");
  if (ofRows) context.strokeRect(x - 0.5, y, long + 1, height * rows.labels.length);
  else context.strokeRect(x, y - 0.5, width * columns.labels.length, long + 1);
}

function legend({ panel, columns, decimals }, range) {
  if (!columns.axis) return make("div", { className: "legend" }, `longest bar: ${shown(range[1], decimals)}`);
  const bar = make("i");
  const colours = palette(panel);
  const steps = [0, 0.25, 0.5, 0.75, 1].map((part) => colour(colours, range[0] + part * (range[1] - range[0]), range));
  bar.style.background = `linear-gradient(to right, ${steps.join(",")})`;
  return make("div", { className: "legend" }, shown(range[0], decimals), bar, shown(range[1], decimals));
}

function overlay(pictured, className, r, c, columns = 1) {
  let mark = pictured.frame.querySelector("." + className);
  if (!mark) pictured.frame.append((mark = make("div", { className })));
  const { left, top, width, height } = pictured;
  Object.assign(mark.style, {
    left: left + c * width + "px",
    top: top + r * height + "px",
    width: Math.max(4, columns * width) + "px",
    height: Math.max(4, height) + "px",
  });
}
