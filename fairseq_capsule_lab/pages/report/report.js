"use strict";

const AT_ONCE = 20;
const at = (id) => document.getElementById(id);

/** Make an element with properties and children. Text is never interpreted as HTML. */
function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// --- tables ----------------------------------------------------------------------------------------------------------

const rowsOf = (table) => [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent));

function markdown(table) {
  const [head, ...rows] = rowsOf(table).map((row) => row.map((text) => text.replace(/[\\|*_`<>[\]]/g, "\\$&")));
  const rules = [...table.tHead.rows[0].cells].map((cell) => (cell.className === "number" ? "---:" : "---"));
  return [head, rules, ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
}

/** The table as CSV. A quote precedes text that begins like a formula, or a spreadsheet would run it; not numbers. */
function commaSeparated(table) {
  const guarded = (text) => (/^[=+\-@\t\r]/.test(text) && !/^[+-]?[\d.,]+( ± [\d.,]+)?$/.test(text) ? `'${text}` : text);
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return rowsOf(table).map((row) => row.map((text) => quoted(guarded(text))).join(",")).join("\n");
}

const TEX = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "<": "\\textless{}",
  ">": "\\textgreater{}", "±": "$\\pm$", "≤": "$\\le$", "–": "--", "…": "\\dots{}", "[": "{[}", "]": "{]}" };

function latex(table) {
  const escaped = (text) => text.replace(/[&%$#_{}]/g, "\\$&").replace(/\\(?![&%$#_{}])|[~^<>±≤–…[\]]/g, (sign) => TEX[sign]);
  const [head, ...rows] = rowsOf(table).map((row) => `${row.map(escaped).join(" & ")} \\\\`);
  const columns = [...table.tHead.rows[0].cells].map((cell) => (cell.className === "number" ? "r" : "l")).join("");
  return [`\\begin{tabular}{${columns}}`, "\\toprule", head, "\\midrule", ...rows, "\\bottomrule", "\\end{tabular}"].join("\n");
}

/** Copy a text and show it, because a browser may refuse access to the clipboard. */
async function copy(place, text, said) {
  place.querySelector(".copied")?.remove();
  const shown = element("textarea", { className: "copied", readOnly: true, value: text, rows: text.split("\n").length + 1,
    ariaLabel: "the copied table" });
  place.append(shown);
  shown.select();
  try {
    await navigator.clipboard.writeText(text);
    said.textContent = "copied";
  } catch {
    said.textContent = document.execCommand("copy") ? "copied" : "selected: press Ctrl-C to copy";
  }
}

for (const place of document.querySelectorAll(".table")) {
  const table = place.querySelector("table");
  sortByHeadings(table, "descending");
  const said = element("span", { role: "status" });
  const buttons = Object.entries({ Markdown: markdown, CSV: commaSeparated, LaTeX: latex }).map(([label, made]) =>
    element("button", { type: "button", textContent: label, onclick: () => copy(place, made(table), said) }));
  place.append(element("div", { className: "copy" }, "copy as", ...buttons, said));
}

// --- sentences -------------------------------------------------------------------------------------------------------

const data = JSON.parse(at("data").textContent);
let shown = AT_ONCE;

/** For each word of `words`, whether it is in the longest common subsequence with `others`. */
function common(words, others) {
  const lengths = Array.from({ length: words.length + 1 }, () => new Uint16Array(others.length + 1));
  for (let i = words.length - 1; i >= 0; i--)
    for (let j = others.length - 1; j >= 0; j--)
      lengths[i][j] = words[i] === others[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
  const kept = words.map(() => false);
  for (let i = 0, j = 0; i < words.length && j < others.length;) {
    if (words[i] === others[j]) { kept[i] = true; i++; j++; }
    else if (lengths[i + 1][j] >= lengths[i][j + 1]) i++;
    else j++;
  }
  return kept;
}

/** The text, with words marked that the other text does not have. Text without spaces is compared by characters. */
function marked(text, other) {
  const cut = (line) => (/\s/.test(line.trim()) ? line.trim().split(/\s+/) : [...line]);
  const [words, others] = [cut(text), cut(other)];
  const kept = common(words, others);
  const gap = /\s/.test(text.trim()) ? " " : "";
  return words.flatMap((word, i) => [kept[i] ? word : element("mark", { textContent: word }), gap]);
}

function line(label, score, content, chosen = false, page = null) {
  const name = element("dt", { className: chosen ? "chosen" : "" }, label);
  if (page) name.append(" ", element("a", { href: page, textContent: "inside", title: `what ${label} routes` }));
  return [name, element("dd", { className: "score", textContent: score }), element("dd", { className: "text", dir: "auto" }, ...content)];
}

/** The second system's score minus the first one's, rounded to tenths like the scores. */
function differenceOf({ scores }, first, second) {
  return Math.round(10 * (scores[second] - scores[first])) / 10;
}

function card(number, first, second) {
  const sentence = data.sentences[number];
  const difference = differenceOf(sentence, first, second);
  const sign = difference > 0 ? "+" : "";
  const rows = [...line("source", "", [sentence.source])];
  sentence.references.forEach((text, i) => rows.push(...line(sentence.references.length > 1 ? `reference ${i + 1}` : "reference", "", [text])));
  const order = [first, second, ...data.systems.keys()].filter((system, i, all) => all.indexOf(system) === i);
  for (const system of order) {
    const other = system === first ? second : first;
    rows.push(...line(data.systems[system], sentence.scores[system].toFixed(1), marked(sentence.texts[system], sentence.texts[other]),
      system === first || system === second, sentence.pages[system]));
  }
  const title = `sentence ${number}: ${data.measure} ${sign}${difference.toFixed(1)}`;
  return element("article", {}, element("h3", { textContent: title }), element("dl", {}, ...rows));
}

function chosen() {
  const [first, second] = [Number(at("first").value), Number(at("second").value)];
  const group = at("group").value, word = at("containing").value.trim().toLowerCase();
  const difference = (i) => differenceOf(data.sentences[i], first, second);
  const keys = { difference: (i) => -Math.abs(difference(i)), second: (i) => -difference(i), first: difference,
    worst: (i) => data.sentences[i].scores[first], number: (i) => i };
  const key = keys[at("order").value];
  const wanted = { first: (i) => difference(i) < 0, second: (i) => difference(i) > 0 }[at("order").value] ?? (() => true);
  const found = [...data.sentences.keys()].filter((i) => {
    const { group: own, source, references, texts } = data.sentences[i];
    return wanted(i) && (group === "" || own === Number(group))
      && (!word || [source, ...references, ...texts].some((text) => text.toLowerCase().includes(word)));
  });
  return { first, second, found: found.sort((a, b) => key(a) - key(b) || a - b) };
}

function draw() {
  const { first, second, found } = chosen();
  at("cases").replaceChildren(...found.slice(0, shown).map((number) => card(number, first, second)));
  at("found").textContent = `${found.length} of ${data.sentences.length} sentences; ${data.measure} of a sentence, second − first. `
    + "Marked: words that the other system does not have.";
  at("more").hidden = shown >= found.length;
}

for (const [id, place] of [["first", 0], ["second", 1]]) {
  at(id).append(...data.systems.map((name, i) => element("option", { value: i, textContent: name, selected: i === place })));
}
at("group").append(...data.groups.map((words, i) => element("option", { value: i, textContent: words })));
at("browse").addEventListener("submit", (event) => event.preventDefault());
for (const event of ["input", "change"]) at("browse").addEventListener(event, () => { shown = AT_ONCE; draw(); });
at("more").addEventListener("click", () => { shown += AT_ONCE; draw(); });
draw();

/** Link each group of lengths to its sentences. */
for (const head of document.querySelectorAll("#lengths-table tbody th")) {
  const link = element("a", { href: "#sentences", textContent: head.textContent });
  link.addEventListener("click", () => { at("group").value = head.dataset.value; shown = AT_ONCE; draw(); });
  head.replaceChildren(link);
}
