// What the scripts of all pages use.

const element = (id) => document.getElementById(id);

// An element with properties and children. Text is never interpreted as HTML.
function make(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// The choices of the reader.
let address = new URLSearchParams(location.hash.slice(1));

// Stores choices in the address. An empty value removes one.
function keep(changes) {
  for (const [name, value] of Object.entries(changes)) {
    if (value) address.set(name, value);
    else address.delete(name);
  }
  try {
    history.replaceState(null, "", "#" + address);
  } catch {
    // A page inside another page, such as a notebook, does not have its own address.
  }
}
