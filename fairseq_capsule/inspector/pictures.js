// Pictures of numbers, and how they are read: by pointer or by arrow keys.

const FEWEST = 12; // pixels of a cell that has a label
const MOST = 32;
const LABELLED = 200; // more labels than this have no room
const BAR = 140; // length of the bar of the largest number, where an array has one axis

function bounds(pictures) {
  const highest = {};
  for (const { panel, values } of pictures) {
    highest[panel.scale] = values.reduce((most, value) => Math.max(most, Math.abs(value)), highest[panel.scale] || 0);
  }
  return (panel) => [panel.scale.startsWith("±") ? -(highest[panel.scale] || 1) : 0, highest[panel.scale] || 1];
}

function colour(panel, value, [low, high]) {
  const colours = page.colours[panel.scale.startsWith("±") ? "signed" : "shares"];
  const place = Math.floor(((value - low) / (high - low)) * colours.length);
  return colours[Math.min(colours.length - 1, Math.max(0, place))];
}

function cellSize(count) {
  return count > LABELLED ? 2 : Math.min(MOST, Math.max(FEWEST, Math.floor(420 / count)));
}

function draw(pictured, range) {
  const { panel, rows, columns, values } = pictured;
  const width = columns.axis ? cellSize(columns.labels.length) : BAR;
  const height = rows.labels.length > LABELLED ? 2 : cellSize(rows.labels.length);
  const face = (size) =>
    `${Math.min(14, Math.max(11, size - 3))}px ${getComputedStyle(document.body).fontFamily}`;
  const canvas = make("canvas", { tabIndex: 0 });
  const context = canvas.getContext("2d");
  const longest = (side, size) => {
    context.font = face(size);
    return size < FEWEST ? 0 : Math.min(160, Math.max(0, ...side.labels.map((label) => context.measureText(label).width)));
  };
  const left = Math.ceil(longest(rows, height)) + 6;
  const top = Math.ceil(longest(columns, width)) + 6;
  const size = [left + width * columns.labels.length + 2, top + height * rows.labels.length + 2];
  const scale = window.devicePixelRatio || 1;
  [canvas.width, canvas.height] = size.map((side) => Math.ceil(side * scale));
  [canvas.style.width, canvas.style.height] = size.map((side) => side + "px");
  context.scale(scale, scale);
  context.fillStyle = getComputedStyle(document.body).color;
  context.textBaseline = "middle";
  if (height >= FEWEST) {
    context.font = face(height);
    context.textAlign = "right";
    rows.labels.forEach((label, r) => context.fillText(label, left - 4, top + (r + 0.5) * height, 160));
  }
  if (width >= FEWEST) {
    context.font = face(width);
    context.textAlign = "left";
    columns.labels.forEach((label, c) => {
      context.save();
      context.translate(left + (c + 0.5) * width, top - 4);
      context.rotate(-Math.PI / 2);
      context.fillText(label, 0, 0, 160);
      context.restore();
    });
  }
  context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--past");
  values.forEach((value, i) => {
    if (columns.axis) context.fillStyle = colour(panel, value, range);
    const [r, c] = [Math.floor(i / columns.labels.length), i % columns.labels.length];
    const length = columns.axis ? width : (BAR * value) / range[1];
    context.fillRect(left + c * width, top + r * height, length, height - (columns.axis ? 0 : 1));
  });
  const title = panel.other ? `${panel.title}, other model` : panel.title;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${title}: ${rows.labels.length} rows, ${columns.labels.length} columns`);
  canvas.dataset.array = panel.array;
  Object.assign(pictured, { canvas, left, top, width, height, title });
  return make(
    "figure", {},
    make("figcaption", { textContent: title }),
    legend(pictured, range),
    (pictured.frame = make("div", { className: "picture" }, canvas)),
  );
}

function legend({ panel, columns, decimals }, range) {
  if (!columns.axis) return make("div", { className: "legend" }, `the longest: ${shown(range[1], decimals)}`);
  const bar = make("i");
  const steps = [0, 0.25, 0.5, 0.75, 1].map((part) => colour(panel, range[0] + part * (range[1] - range[0]), range));
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

// ---- reading numbers

let cursor = null;

function read(pictures, pictured, r, c) {
  const { rows, columns } = pictured;
  if (r < 0 || c < 0 || r >= rows.labels.length || c >= columns.labels.length) return leave(pictures);
  cursor = { pictured, r, c };
  const lines = [columns.axis ? `${isolate(rows.labels[r])} → ${isolate(columns.labels[c])}` : isolate(rows.labels[r])];
  for (const each of pictures) {
    if (each.rows.axis !== rows.axis || each.columns.axis !== columns.axis) continue;
    const value = each.values[r * columns.labels.length + c];
    lines.push(`${each.title}: ${shown(value, each.decimals)}`);
    overlay(each, "cursor", r, c);
  }
  const readout = element("readout");
  readout.textContent = lines.join("\n");
  readout.hidden = false;
  const box = pictured.canvas.getBoundingClientRect();
  const x = box.left + pictured.left + (c + 1) * pictured.width + 14;
  const y = box.top + pictured.top + (r + 1) * pictured.height + 14;
  readout.style.left = Math.min(x, window.innerWidth - readout.offsetWidth - 8) + "px";
  readout.style.top = Math.min(y, window.innerHeight - readout.offsetHeight - 8) + "px";
}

// Words of either direction beside each other, each in its own.
function isolate(text) {
  return `\u2068${text}\u2069`;
}

function leave(pictures) {
  cursor = null;
  element("readout").hidden = true;
  for (const each of pictures) each.frame.querySelector(".cursor")?.remove();
}

function listen(pictures, pictured) {
  const { canvas, left, top, width, height } = pictured;
  canvas.addEventListener("pointermove", (event) => {
    const [c, r] = [(event.offsetX - left) / width, (event.offsetY - top) / height].map(Math.floor);
    read(pictures, pictured, r, c);
  });
  canvas.addEventListener("pointerleave", () => leave(pictures));
  canvas.addEventListener("blur", () => leave(pictures));
  canvas.addEventListener("focus", () => cursor?.pictured === pictured || read(pictures, pictured, 0, 0));
  canvas.addEventListener("keydown", (event) => {
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] || [];
    if (down === undefined) return;
    event.preventDefault();
    const { r, c } = cursor?.pictured === pictured ? cursor : { r: 0, c: 0 };
    const last = [pictured.rows.labels.length - 1, pictured.columns.labels.length - 1];
    read(pictures, pictured, Math.min(last[0], Math.max(0, r + down)), Math.min(last[1], Math.max(0, c + right)));
  });
}
