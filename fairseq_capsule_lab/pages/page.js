// The address stores the choices. When it changes, everything is redrawn.

// ---- choices

// The choices of the reader.
let address = new URLSearchParams(location.hash.slice(1));

// Stores choices in the address, and draws them. An empty value removes one.
function choose(changes) {
  for (const [name, value] of Object.entries(changes)) {
    if (value) address.set(name, value);
    else address.delete(name);
  }
  try {
    history.replaceState(null, "", "#" + address);
  } catch {
    // A page inside another page, such as a notebook, does not have its own address.
  }
  render();
}

const usualWords = [page.source, page.target].some(isOneWord) ? "parts" : "whole";

function chosen() {
  const view = page.views.find((each) => each.name === address.get("view")) || page.views[0];
  const places = {};
  for (const [axis, labels] of Object.entries(view.choices)) {
    const usual = axis === "head" ? labels[0] : view.last[axis]; // heads have no order
    places[axis] = labels.includes(address.get(axis)) ? address.get(axis) : usual;
  }
  const steps = view.steps ? page.target.length : 0;
  const step = Math.min(Math.max(1, parseInt(address.get("step"), 10) || 1), Math.max(1, steps));
  return { view, places, step, joined: (address.get("words") ?? usualWords) === "whole" };
}

// ---- controls

function fill(select, options, value) {
  select.replaceChildren(...options.map(([name, text]) => make("option", { value: name, textContent: text })));
  select.value = value;
}

function drawControls(state) {
  const { view, places, joined } = state;
  document.documentElement.dataset.theme = address.get("theme") ?? "";
  fill(element("view"), page.views.map(({ name, title }) => [name, title]), view.name);
  element("joined").checked = joined;
  element("title").textContent = view.title;
  element("caption").textContent = view.caption;
  // They are rebuilt only for another view: replacing a slider during a drag ends the drag.
  if (element("choices").dataset.view !== view.name) makeChoices(view);
  for (const axis of Object.keys(view.choices)) element(`choice-${axis}`).value = places[axis];
  if (view.steps) updateStepper(state);
}

function makeChoices(view) {
  const choices = Object.entries(view.choices).map(([axis, labels]) => {
    const select = make("select", { id: `choice-${axis}` });
    fill(select, labels.map((label) => [label, label]), labels[0]);
    select.addEventListener("change", () => choose({ [axis]: select.value }));
    return make("label", {}, `${axis} `, select);
  });
  if (view.steps) choices.push(stepper());
  element("choices").replaceChildren(...choices);
  element("choices").dataset.view = view.name;
}

// ---- the whole page

// Pictures of one scale show as many decimals as the least precise of them.
function shareDecimals(pictures) {
  const fewest = {};
  for (const { panel, decimals } of pictures) fewest[panel.scale] = Math.min(decimals, fewest[panel.scale] ?? decimals);
  for (const each of pictures) each.decimals = fewest[each.panel.scale];
}

let drawn = 0;

async function render() {
  const turn = ++drawn;
  const state = chosen();
  drawControls(state);
  const pictures = (await Promise.all(state.view.panels.map((panel) => gather(panel, state)))).filter(Boolean);
  shareDecimals(pictures);
  const steps = state.view.steps && ofOne(pictures).length > 0;
  const bags = steps ? await bagLists(pictures, state) : [];
  if (turn !== drawn) return; // a later choice replaces this one
  leave([]);
  const focused = document.activeElement?.ariaLabel; // replaced elements lose the focus
  const range = bounds(pictures.flatMap((each) => [each, ...each.small]));
  const figures = pictures.map((each) => figure(each, range(each.panel), state));
  element("panels").replaceChildren(...grouped(pictures, figures));
  arrange(pictures);
  for (const each of pictures) {
    enlarge(each, range(each.panel));
    listen(pictures, each);
  }
  if (steps) drawSteps(pictures, bags, state);
  else element("stepping").replaceChildren();
  if (focused) document.querySelector(`#panels [aria-label="${CSS.escape(focused)}"]`)?.focus();
  document.body.dataset.drawn = turn;
}

function start() {
  const here = decodeURIComponent(location.pathname.split("/").pop());
  const own = window.sentences?.find(({ file }) => decodeURIComponent(file) === here);
  if (own) {
    fill(element("sentence"), window.sentences.map(({ file, text }) => [file, text]), own.file);
    element("sentence").addEventListener("change", (event) => (location.href = event.target.value + location.hash));
  } else {
    element("navigation")?.remove(); // the page is not in its folder any more
  }
  element("view").addEventListener("change", (event) => choose({ view: event.target.value }));
  element("joined").addEventListener("change", (event) => {
    const words = event.target.checked ? "whole" : "parts";
    choose({ words: words === usualWords ? null : words });
  });
  element("theme").addEventListener("click", () => choose({ theme: isDark() ? "light" : "dark" }));
  window.addEventListener("hashchange", () => {
    address = new URLSearchParams(location.hash.slice(1));
    render();
  });
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (width !== (width = window.innerWidth)) render();
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", render);
  render();
}

start();
