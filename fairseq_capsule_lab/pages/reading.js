// Reads the numbers of pictures by pointer.

function read(pictures, pictured, r, c) {
  const { rows, columns } = pictured;
  if (r < 0 || c < 0 || r >= rows.labels.length || c >= columns.labels.length) return leave(pictures);
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
}
