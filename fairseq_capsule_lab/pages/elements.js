// What the scripts of all pages use.

const element = (id) => document.getElementById(id);

// An element with properties and children. Text is never interpreted as HTML.
function make(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}
