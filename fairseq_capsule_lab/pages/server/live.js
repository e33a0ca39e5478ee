"use strict";

const at = (id) => document.getElementById(id);

/** Make an element with properties and children. Text is never interpreted as HTML. */
function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** The answer of a route as an object; throws an Error with the message of the server. */
async function ask(path, body, signal) {
  const options = body && {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal,
  };
  const response = await fetch(path, options);
  const found = await response.json().catch(() => ({ error: `the server answered ${response.status}` }));
  if (!response.ok) throw new Error(found.error);
  return found;
}

function say(message, wrong = false) {
  at("status").textContent = message;
  at("status").classList.toggle("wrong", wrong);
}

function table(hypotheses) {
  const head = element("tr", {}, ...["", "hypothesis", "score"].map((label, column) =>
    element("th", { scope: "col", textContent: label, className: column === 1 ? "" : "number" })));
  const rows = hypotheses.map((each, rank) => element("tr", {},
    element("td", { className: "number", textContent: rank + 1 }),
    element("td", { dir: "auto", textContent: each.translation }),
    element("td", { className: "number", textContent: each.score === null ? "" : each.score.toFixed(3) })));
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
}

function shown(system) {
  return element("section", { className: "system", ariaLabel: system.name },
    element("h2", {}, `${system.name} `, element("small", { textContent: `${system.milliseconds} ms` })),
    element("p", { className: "best", dir: "auto", textContent: system.hypotheses[0]?.translation ?? "" }),
    table(system.hypotheses));
}

let model, running;

async function translate() {
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  const asked = { text: at("text").value, beam: at("beam").valueAsNumber };
  const query = new URLSearchParams(asked);
  document.querySelector("button").disabled = true;
  say("translating …");
  try {
    const found = await ask("/translate", asked, signal);
    at("translations").replaceChildren(...found.systems.map(shown));
    say("");
    history.replaceState(null, "", `/#${query}`);
    at("inside").hidden = !model.views.length;
    if (model.views.length) {
      at("page").src = at("alone").href = `/page?${query}`;
    } else {
      say("This model has no attention or capsules to show.");
    }
  } catch (error) {
    if (error.name !== "AbortError") say(error.message, true);
  } finally {
    if (!signal.aborted) document.querySelector("button").disabled = false;
  }
}

/** The frame is as high as its content, because nested scrolling is hard to use. */
at("page").addEventListener("load", () => {
  const frame = at("page");
  if (!frame.contentDocument?.body) return;
  new ResizeObserver(() => {
    frame.style.height = `${frame.contentDocument.body.offsetHeight + 4}px`;
  }).observe(frame.contentDocument.body);
});

at("form").addEventListener("submit", (event) => {
  event.preventDefault();
  translate();
});
at("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    at("form").requestSubmit();
  }
});

async function start() {
  try {
    model = await ask("/model");
  } catch (error) {
    say(error.message, true);
    return;
  }
  const [first] = model.systems;
  const languages = [first.source_language, first.target_language].filter(Boolean).join(" → ");
  at("systems").replaceChildren(...model.systems.map((system) => element("li", {},
    element("b", { textContent: system.name }),
    `: ${system.architecture}, ${system.parameters.toLocaleString("en")} parameters; ${system.summary}.`)));
  at("language").textContent = languages && `(${languages})`;
  at("limit").textContent = `At most ${model.longest} subwords.`;
  const asked = new URLSearchParams(location.hash.slice(1));
  at("beam").value = asked.get("beam") ?? model.beam;
  at("text").value = asked.get("text") ?? "";
  at("text").focus();
  if (at("text").value) at("form").requestSubmit();
}

start();
