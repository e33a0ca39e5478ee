// A view step by step: the parts of every source word before each word of the translation is generated.

const PAUSE = 1200; // milliseconds per step during playback
const PARTS = 4; // number of colours in the style

// The model's own pictures, or those of the other model if it has none.
function ofOne(pictures) {
  const own = pictures.filter(({ panel }) => !panel.other && !panel.difference);
  return own.length ? own : pictures.filter(({ panel }) => panel.other);
}

// The groups of subwords to step through, and the group of the chosen step.
function stepsOf({ joined, step }) {
  const groups = joined ? words(page.target) : apart(page.target);
  return { groups, place: groups.findIndex((group) => group.includes(step - 1)) };
}

function drawSteps(pictures, bags, state) {
  const { groups, place } = stepsOf(state);
  const parts = ofOne(pictures);
  const key = make("span", { className: "key" });
  parts.forEach(({ panel }, part) => key.append(make("i", { className: `part-${part % PARTS}` }), panel.title));
  const target = make("div", { className: "words" });
  groups.forEach((group, t) => {
    const label = state.joined ? word(page.target, group) : page.target[t];
    const button = make("button", { type: "button", className: "word" }, make("bdi", { textContent: label }));
    if (t === place) button.setAttribute("aria-current", "step");
    if (t > place) button.classList.add("later");
    button.addEventListener("click", () => choose({ step: group[0] + 1 }));
    target.append(button);
  });
  for (const each of pictures) overlay(each, "step", place, 0, each.columns.labels.length);
  element("stepping").replaceChildren(
    make("p", {}, `The source before word ${place + 1} of ${groups.length} is generated:`, key),
    sourceWords(parts, place),
    make("p", {}, "The translation so far, and the word that is generated next:"), target,
    make("p", { className: "legend" }, make("i", { className: "marked" }), "the row of this step in the pictures below"),
    make("div", { className: "bags" }, ...bags),
  );
}

// Every word with its bars: shares are parts of one bar of full width, other numbers have one bar each.
function sourceWords(parts, row) {
  const source = make("div", { className: "words" });
  const highest = Math.max(...parts.flatMap(({ values }) => values)) || 1;
  parts[0].columns.labels.forEach((label, c) => {
    const told = [];
    const bars = parts.map((each, part) => {
      const value = each.values[row * each.columns.labels.length + c];
      told.push(`${each.panel.title} ${shown(value, each.decimals)}`);
      const bar = make("i", { className: `part-${part % PARTS}` });
      const whole = each.panel.distribution === each.panel.at[0]?.[0];
      if (whole) bar.style.flexGrow = value;
      else bar.style.width = `${(100 * value) / highest}%`;
      return { bar, whole };
    });
    const shares = make("span", { className: bars[0].whole ? "shares" : "shares apart" }, ...bars.map(({ bar }) => bar));
    source.append(make("span", { className: "word", title: told.join(", ") }, make("bdi", { textContent: label }), shares));
  });
  return source;
}

async function bagLists(pictures, { step }) {
  const model = ofOne(pictures)[0].panel.other ? "against." : "";
  const said = { past: page.target.slice(0, step - 1), future: page.target.slice(step - 1) };
  const bags = ["past", "future"].filter((bag) => `${model}${bag}_words` in page.arrays);
  const decimals = Math.min(...bags.map((bag) => page.arrays[`${model}${bag}_probabilities`].decimals));
  return Promise.all(bags.map((bag) => bagList(model, bag, step, said[bag], decimals)));
}

async function bagList(model, bag, step, said, decimals) {
  const probabilities = await numbers(`${model}${bag}_probabilities`);
  const predicted = page.arrays[`${model}${bag}_words`].words[step - 1];
  const list = make("ol", { id: `${bag}-words` });
  predicted.forEach((label, rank) => {
    const probability = shown(probabilities[(step - 1) * predicted.length + rank], decimals);
    const name = make("bdi", { textContent: label, className: said.includes(label) ? "found" : "" });
    list.append(make("li", {}, name, ` ${probability}`));
  });
  const meaning = bag === "past" ? "it is in the translation so far" : "it is in the rest of the translation";
  return make("div", {}, make("p", {}, `Words that ${bag.toUpperCase()} predicts; bold: ${meaning}`), list);
}

// ---- the slider, its number and the playback button

let playing = null; // the timer of the playback

function stepper() {
  const range = make("input", { type: "range", id: "step", min: 1 });
  range.addEventListener("input", () => goTo(range.value - 1));
  const button = make("button", { type: "button", id: "play" });
  button.addEventListener("click", () => (playing ? pause() : play()));
  const label = make("label", {}, "step", range);
  return make("span", { className: "stepper" }, label, make("span", { id: "step-number" }), button);
}

function updateStepper(state) {
  const { groups, place } = stepsOf(state);
  element("step").max = groups.length;
  element("step").value = place + 1;
  element("step-number").textContent = `${place + 1} of ${groups.length}`;
  element("play").textContent = playing ? "pause" : "play";
}

function goTo(place) {
  choose({ step: stepsOf(chosen()).groups[place][0] + 1 });
}

function play() {
  const { groups, place } = stepsOf(chosen());
  if (place + 1 === groups.length) goTo(0);
  playing = setInterval(goOn, PAUSE);
  render();
}

function goOn() {
  const state = chosen();
  const { groups, place } = stepsOf(state);
  if (state.view.steps && place + 1 < groups.length) goTo(place + 1);
  else pause();
}

function pause() {
  clearInterval(playing);
  playing = null;
  render();
}
