// The frame is as high as its content, because nested scrolling is hard to use.
const inside = document.getElementById("inside");
inside?.addEventListener("load", () => {
  const { body } = inside.contentDocument;
  new ResizeObserver(() => (inside.style.height = `${body.offsetHeight + 4}px`)).observe(body);
});

document.getElementById("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.ctrlKey) event.target.form.requestSubmit();
});
