// A figure: a picture with its title, legend and caption. Several heads or iterations are also shown side by side, as
// small pictures.

const BESIDE = 640; // pixels: minimum width of a figure to show the small pictures beside the large one
const [NARROWEST, GAP] = [350, 16]; // pixels: minimum width of a figure beside others, and the space between them
const WIDE = 4; // pixels: a picture with narrower cells takes its own row

function shownEntropy(value) {
  return value === null ? "none" : value.toFixed(2);
}

// The large picture of a panel and the small ones along its axis; null if the array does not have the layer.
async function gather(panel, state) {
  const pictured = await picture(panel, state);
  if (!pictured) return null;
  const axis = spreadOf(panel);
  const small = axis ? await along(panel, axis, state) : [];
  pictured.entropy = await entropies(pictured, state);
  for (const [i, each] of small.entries()) {
    each.label = labelsOf(panel, axis)[i];
    each.entropy = await entropies(each, { ...state, places: { ...state.places, [axis]: each.label } });
  }
  pictured.title = panel.other ? `${panel.title}, other model` : panel.title;
  return Object.assign(pictured, { axis, small });
}

function figure(pictured, range, state) {
  const { panel, title, axis, small, entropy } = pictured;
  const place = axis ? `, ${axis} ${state.places[axis]}` : "";
  const ariaLabel = `${title}${place}: its numbers are in the table below`;
  const canvas = make("canvas", { role: "img", ariaLabel });
  canvas.dataset.array = panel.difference ? `difference.${panel.array}` : panel.array;
  pictured.canvas = canvas;
  pictured.frame = make("div", { className: "picture" }, canvas);
  const large = make("div", { className: "large" }, legend(pictured, range), pictured.frame);
  const drawing = make("div", { className: "drawing" }, large);
  if (small.length > 1) drawing.append(multiples(pictured, range, state));
  const told = [make("p", { className: "meaning", textContent: panel.caption })];
  if (entropy) {
    const average = shownEntropy(mean(entropy.found));
    const which = { rows: "of the rows", columns: "of the columns", whole: "of the bars" }[entropy.of];
    told.push(make("p", { className: "entropy", textContent: `Entropy ${which}, mean: ${average}.` }));
  }
  const made = make("figure", { className: "card" }, make("figcaption", { textContent: title + place }), drawing, ...told);
  made.append(numbersAsTable(pictured));
  return made;
}

// Small pictures for all labels along an axis. A click enlarges one.
function multiples({ title, axis, small }, range, state) {
  const buttons = small.map((each) => {
    const image = each.columns.axis ? pixels(each, range) : "";
    const average = each.entropy ? mean(each.entropy.found) : null;
    const ariaLabel = `${title}, ${axis} ${each.label}`;
    const button = make("button", { type: "button", className: "multiple", ariaLabel }, image, each.label);
    if (average !== null) button.append(make("small", {}, shownEntropy(average)));
    button.ariaPressed = each.label === state.places[axis];
    button.addEventListener("click", () => choose({ [axis]: each.label }));
    return button;
  });
  const plural = `all ${axis}s${small[0].entropy ? ", with their entropy" : ""}:`;
  const strip = make("div", { className: "strip" }, ...buttons);
  strip.style.setProperty("--count", buttons.length);
  return make("div", { className: "small" }, make("p", { textContent: plural }), strip);
}

// A table of numbers, for screen readers and for copying. It is built when it is opened.
function numbersAsTable({ rows, columns, values, decimals }) {
  const details = make("details", { className: "numbers" }, make("summary", { textContent: "numbers" }));
  details.addEventListener("toggle", () => {
    if (details.childElementCount > 1) return;
    const heading = (scope, text) => make("th", { scope, textContent: text });
    const head = make("tr", {}, make("td"), ...columns.labels.map((label) => heading("col", label || "number")));
    const body = rows.labels.map((label, r) => {
      const cells = columns.labels.map((_, c) => shown(values[r * columns.labels.length + c], decimals));
      return make("tr", {}, heading("row", label), ...cells.map((text) => make("td", { textContent: text })));
    });
    const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...body));
    details.append(make("div", { className: "scrolled", tabIndex: 0 }, table));
  });
  return details;
}

// A panel, the other model's panel and the difference form one row. All panels that only one model has form the last row.
function grouped(pictures, figures) {
  const groups = new Map();
  pictures.forEach(({ panel }, i) => {
    const key = panel.array.replace(/^against\./, "") + JSON.stringify(panel.at);
    groups.set(key, [...(groups.get(key) || []), figures[i]]);
  });
  const rows = [...groups.values()];
  const compared = rows.filter((row) => row.length > 1);
  const alone = rows.filter((row) => row.length === 1).flat();
  return [...compared, alone].filter((row) => row.length).map((row) => make("div", { className: "row" }, ...row));
}

// Divides every row into columns. A figure that is too narrow for its picture takes a row of its own.
function arrange(pictures) {
  const rows = [...document.querySelectorAll("#panels .row")];
  rows.forEach(divide);
  const narrow = pictures.filter(({ frame, columns: { labels, axis }, entropy }) => {
    const needed = (areWords(labels) ? FEWEST : WIDE) * labels.length + LABEL / 2 + (entropy ? ENTROPY : 0);
    return axis && needed > frame.closest(".drawing").clientWidth;
  });
  for (const { frame } of narrow) frame.closest(".card").classList.add("wide");
  rows.forEach(divide);
}

// As few lines as possible, with equally many figures as far as possible: four figures take two lines of two, not of three
// and one.
function divide(row) {
  const count = row.querySelectorAll(":scope > .card:not(.wide)").length || 1;
  const fit = Math.max(1, Math.floor((row.clientWidth + GAP) / (NARROWEST + GAP)));
  row.style.setProperty("--columns", Math.ceil(count / Math.ceil(count / fit)));
}

// Draws the large picture of a figure in the page, as large as the figure allows.
function enlarge(pictured, range) {
  const drawing = pictured.frame.closest(".drawing");
  const inside = drawing.clientWidth;
  const beside = drawing.querySelector(".small") && inside > BESIDE;
  draw(pictured, range, beside ? inside * 0.62 : inside);
}
