// The sentences of the systems side by side, those first that differ most between two of them.

const AT_ONCE = 20;
const data = JSON.parse(element("data").textContent);
let shown = AT_ONCE;

// For each word of `words`, whether it is in the longest common subsequence with `others`.
function common(words, others) {
  const lengths = Array.from({ length: words.length + 1 }, () => new Uint16Array(others.length + 1));
  for (let i = words.length - 1; i >= 0; i--) {
    for (let j = others.length - 1; j >= 0; j--) {
      const longer = Math.max(lengths[i + 1][j], lengths[i][j + 1]);
      lengths[i][j] = words[i] === others[j] ? lengths[i + 1][j + 1] + 1 : longer;
    }
  }
  const kept = words.map(() => false);
  let [i, j] = [0, 0];
  while (i < words.length && j < others.length) {
    if (words[i] === others[j]) {
      kept[i] = true;
      i++;
      j++;
    } else if (lengths[i + 1][j] >= lengths[i][j + 1]) i++;
    else j++;
  }
  return kept;
}

// The text, with words marked that the other text does not have. Text without spaces is compared by characters.
function marked(text, other) {
  const cut = (line) => (/\s/.test(line.trim()) ? line.trim().split(/\s+/) : [...line]);
  const words = cut(text);
  const kept = common(words, cut(other));
  const gap = /\s/.test(text.trim()) ? " " : "";
  return words.flatMap((word, i) => [kept[i] ? word : make("mark", { textContent: word }), gap]);
}

function line(label, score, content) {
  return [make("dt", {}, label), make("dd", { className: "score" }, score), make("dd", { dir: "auto" }, ...content)];
}

// The second system's score minus the first one's, rounded to tenths like the scores.
function difference(number, first, second) {
  const { scores } = data.sentences[number];
  return Math.round(10 * (scores[second] - scores[first])) / 10;
}

function card(number, first, second) {
  const { source, references, texts, scores } = data.sentences[number];
  const rows = line("source", "", [source]);
  for (const reference of references) rows.push(...line("reference", "", [reference]));
  const others = [...data.systems.keys()].filter((system) => system !== first && system !== second);
  for (const system of [...new Set([first, second]), ...others]) {
    const other = system === first ? second : first;
    rows.push(...line(data.systems[system], scores[system].toFixed(1), marked(texts[system], texts[other])));
  }
  const change = difference(number, first, second);
  const title = `sentence ${number}: ${data.measure} ${change > 0 ? "+" : ""}${change.toFixed(1)}`;
  return make("article", { className: "card" }, make("h3", {}, title), make("dl", {}, ...rows));
}

// The numbers of the sentences that the form selects, in its order.
function chosen(first, second) {
  const [order, group] = [element("order").value, element("group").value];
  const word = element("containing").value.trim().toLowerCase();
  const found = [...data.sentences.keys()].filter((number) => {
    const { group: own, source, references, texts } = data.sentences[number];
    const change = difference(number, first, second);
    if ((order === "first" && change >= 0) || (order === "second" && change <= 0)) return false;
    if (group !== "" && own !== Number(group)) return false;
    return [source, ...references, ...texts].some((text) => text.toLowerCase().includes(word));
  });
  const keys = {
    difference: (number) => -Math.abs(difference(number, first, second)),
    second: (number) => -difference(number, first, second),
    first: (number) => difference(number, first, second),
    number: (number) => number,
  };
  const key = keys[order];
  return found.sort((one, other) => key(one) - key(other) || one - other);
}

function draw() {
  const [first, second] = [Number(element("first").value), Number(element("second").value)];
  const found = chosen(first, second);
  element("cases").replaceChildren(...found.slice(0, shown).map((number) => card(number, first, second)));
  element("found").textContent =
    `${found.length} of ${data.sentences.length} sentences; ${data.measure} of a sentence, second − first. ` +
    "Marked: words that the other system does not have.";
  element("more").hidden = shown >= found.length;
}

element("browse").addEventListener("submit", (event) => event.preventDefault());
for (const event of ["input", "change"]) {
  element("browse").addEventListener(event, () => {
    shown = AT_ONCE;
    draw();
  });
}
element("more").addEventListener("click", () => {
  shown += AT_ONCE;
  draw();
});
draw();
