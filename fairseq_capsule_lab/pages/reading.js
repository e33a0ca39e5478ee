// Reads the numbers of pictures by pointer or by arrow keys.

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
  if (pictured.entropy?.of === "rows") lines.push(`entropy of the row: ${shownEntropy(pictured.entropy.found[r])}`);
  if (pictured.entropy?.of === "columns") lines.push(`entropy of the column: ${shownEntropy(pictured.entropy.found[c])}`);
  const readout = element("readout");
  readout.textContent = lines.join("\n");
  readout.hidden = false;
  const box = pictured.canvas.getBoundingClientRect();
  const x = box.left + pictured.left + (c + 1) * pictured.width + 14;
  const y = box.top + pictured.top + (r + 1) * pictured.height + 14;
  readout.style.left = Math.max(0, Math.min(x, window.innerWidth - readout.offsetWidth - 8)) + "px";
  readout.style.top = Math.max(0, Math.min(y, window.innerHeight - readout.offsetHeight - 8)) + "px";
}

// Isolates words, so that left-to-right and right-to-left words can stand side by side.
function isolate(text) {
  return `\u2068${text}\u2069`;
}

function leave(pictures) {
  cursor = null;
  element("readout").hidden = true;
  for (const each of pictures) each.frame.querySelector(".cursor")?.remove();
}

function listen(pictures, pictured) {
  const { canvas } = pictured;
  canvas.addEventListener("pointermove", (event) => {
    const { left, top, width, height } = pictured;
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
