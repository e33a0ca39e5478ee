// Renders equations: reads a JSON list of {tex, display} from standard input and prints a JSON list of HTML.
// Usage: node katex.js FOLDER_OF_KATEX < equations.json. An equation that KaTeX rejects ends it with status 1.
const katex = require(process.argv[2]);
const equations = JSON.parse(require("fs").readFileSync(0, "utf8"));
try {
  const html = equations.map(({ tex, display }) =>
    katex.renderToString(tex, { displayMode: display, throwOnError: true, strict: "error" }));
  console.log(JSON.stringify(html));
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
