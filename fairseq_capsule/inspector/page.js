// What is chosen stands in the address; whenever that changes, everything is drawn anew.

// ---- what is chosen

function chosen() {
  const address = new URLSearchParams(location.hash.slice(1));
  const view = page.views.find((each) => each.name === address.get("view")) || page.views[0];
  const places = {};
  for (const [axis, labels] of Object.entries(view.choices)) {
    const usual = axis === "head" ? labels[0] : view.last[axis];
    places[axis] = labels.includes(address.get(axis)) ? address.get(axis) : usual;
  }
  const steps = view.steps ? page.target.length : 0;
  const step = Math.min(Math.max(1, parseInt(address.get("step"), 10) || 1), Math.max(1, steps));
  return { view, places, step, joined: address.get("words") === "whole", theme: address.get("theme") };
}

function choose(changes) {
  const address = new URLSearchParams(location.hash.slice(1));
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) address.delete(name);
    else address.set(name, value);
  }
  location.replace("#" + address);
}

// ---- PAST and FUTURE, step by step

// The model's own pictures; those of the other where it has none.
function ofOne(pictures) {
  const own = pictures.filter(({ panel }) => !panel.other);
  return own.length ? own : pictures;
}

function drawStep(pictures, bags, { step }) {
  const row = (pictured) => pictured.rows.groups.findIndex((group) => group.includes(step - 1));
  const source = make("div", { className: "words" });
  pictures[0].columns.labels.forEach((label, c) => {
    const shares = make("span", { className: "shares" });
    const told = [];
    for (const each of ofOne(pictures)) {
      const value = each.values[row(each) * each.columns.labels.length + c];
      const bar = make("i", { className: each.panel.title });
      bar.style.flexGrow = value;
      shares.append(bar);
      told.push(`${each.title} ${shown(value, each.decimals)}`);
    }
    source.append(make("span", { className: "word", title: told.join(", ") }, make("bdi", { textContent: label }), shares));
  });
  const target = make("div", { className: "words" });
  page.target.forEach((label, t) => {
    const button = make("button", { type: "button", className: "word" }, make("bdi", { textContent: label }));
    if (t + 1 === step) button.setAttribute("aria-current", "step");
    if (t + 1 > step) button.classList.add("later");
    button.addEventListener("click", () => choose({ step: t + 1 }));
    target.append(button);
  });
  const key = make("span", { className: "key" });
  for (const { panel } of ofOne(pictures)) {
    key.append(make("i", { className: panel.title }), panel.title);
  }
  for (const each of pictures) overlay(each, "step", row(each), 0, each.columns.labels.length);
  element("stepping").replaceChildren(
    make("div", {}, `Before step ${step} of ${page.target.length}, what became of the source:`, key),
    source, make("div", {}, "The translation so far, and the word to be said:"), target,
    make("div", { className: "bags" }, ...bags),
  );
}

async function bagLists(pictures, { step }) {
  const model = ofOne(pictures)[0].panel.other ? "against." : "";
  const said = { past: page.target.slice(0, step - 1), future: page.target.slice(step - 1) };
  const bags = ["past", "future"].filter((bag) => `${model}${bag}_words` in page.arrays);
  return Promise.all(bags.map((bag) => bagList(model, bag, step, said[bag])));
}

async function bagList(model, bag, step, said) {
  const array = page.arrays[`${model}${bag}_probabilities`];
  const probabilities = await numbers(`${model}${bag}_probabilities`);
  const predicted = page.arrays[`${model}${bag}_words`].words[step - 1];
  const list = make("ol", { id: `${bag}-words` });
  predicted.forEach((label, rank) => {
    const probability = shown(probabilities[(step - 1) * predicted.length + rank], array.decimals);
    const name = make("bdi", { textContent: label, className: said.includes(label) ? "found" : "" });
    list.append(make("li", {}, name, ` ${probability}`));
  });
  const meaning = bag === "past" ? "said already" : "to be said";
  return make("div", {}, `Words that ${bag.toUpperCase()} predicts; bold: ${meaning}`, list);
}

// ---- controls

function fill(select, options, value) {
  select.replaceChildren(...options.map(([name, text]) => make("option", { value: name, textContent: text })));
  select.value = value;
}

function drawControls({ view, places, step, joined, theme }) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  fill(element("view"), page.views.map(({ name, title }) => [name, title]), view.name);
  element("joined").checked = joined;
  element("caption").textContent = view.caption;
  // They are made anew for another view alone: a slider that is replaced while it is dragged lets go.
  if (element("choices").dataset.view !== view.name) makeChoices(view);
  for (const axis of Object.keys(view.choices)) element(`choice-${axis}`).value = places[axis];
  if (view.steps) element("step").value = step;
}

function makeChoices(view) {
  const choices = Object.entries(view.choices).map(([axis, labels]) => {
    const select = make("select", { id: `choice-${axis}` });
    select.dataset.key = axis[0];
    fill(select, labels.map((label) => [label, label]), labels[0]);
    select.addEventListener("change", () => choose({ [axis]: select.value }));
    return make("label", {}, make("u", { textContent: axis[0] }), axis.slice(1) + " ", select);
  });
  if (view.steps) {
    const range = make("input", { type: "range", id: "step", min: 1, max: page.target.length });
    range.dataset.key = "s";
    range.addEventListener("input", () => choose({ step: range.value }));
    choices.push(make("label", {}, make("u", { textContent: "s" }), "tep ", range));
  }
  element("choices").replaceChildren(...choices);
  element("choices").dataset.view = view.name;
}

// The control of a letter goes on to its next choice, or back.
function step(control, forward) {
  if (control.type === "checkbox" || control.type === "button") return control.click();
  const before = control.value;
  if (control.type === "range") {
    if (forward) control.stepUp();
    else control.stepDown();
  } else {
    control.selectedIndex = Math.min(control.length - 1, Math.max(0, control.selectedIndex + (forward ? 1 : -1)));
  }
  if (control.value !== before) control.dispatchEvent(new Event(control.type === "range" ? "input" : "change"));
}

// ---- all of it

let drawn = 0;

async function render() {
  const turn = ++drawn;
  const state = chosen();
  drawControls(state);
  const pictures = (await Promise.all(state.view.panels.map((panel) => picture(panel, state)))).filter(Boolean);
  const bags = state.view.steps ? await bagLists(pictures, state) : [];
  if (turn !== drawn) return; // something else was chosen meanwhile
  leave([]);
  const range = bounds(pictures);
  element("panels").replaceChildren(...pictures.map((each) => draw(each, range(each.panel))));
  for (const each of pictures) listen(pictures, each);
  if (state.view.steps) drawStep(pictures, bags, state);
  else element("stepping").replaceChildren();
  document.body.dataset.drawn = turn;
}

function start() {
  const plain = (labels) => words(labels.slice(0, -1)).map((group) => word(labels, group)).join(" ");
  element("source").textContent = plain(page.source);
  element("translation").textContent = page.translation;
  element("reference").textContent = page.reference || "";
  element("reference").parentElement.hidden = page.reference === null;
  const own = page.sentences.find(({ number }) => number === page.number);
  fill(element("sentence"), page.sentences.map(({ number, file, text }) => [file, `${number}: ${text}`]), own.file);
  element("sentence").addEventListener("change", (event) => (location.href = event.target.value + location.hash));
  element("view").addEventListener("change", (event) => choose({ view: event.target.value }));
  element("joined").addEventListener("change", (event) => choose({ words: event.target.checked ? "whole" : null }));
  element("theme").addEventListener("click", () => {
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
    choose({ theme: dark ? "light" : "dark" });
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const control = document.querySelector(`[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
    if (!control) return;
    event.preventDefault();
    step(control, !event.shiftKey);
  });
  window.addEventListener("hashchange", render);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", render);
  render();
}

start();
