"""Hooks of mkdocs.yml: pages from files outside docs/, the API reference, equations, and pages that load no address.

mkdocs calls the functions `on_…` by their names.
"""

import ast
import html
import json
import re
import subprocess
from pathlib import Path
from typing import List

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

ROOT = Path(__file__).parent.parent.parent
NODE_MODULES = ROOT / ".venv/site/node_modules"  # scripts/docs.sh installs them
KATEX = NODE_MODULES / "katex/dist"

# The theme loads this script from the network. It lets the search work in pages that are opened from a disk.
WORKER_ADDRESS = "https://unpkg.com/iframe-worker/shim"
WORKER = "assets/iframe-worker.js"

# Files of the repository's root that are pages of the site.
ROOT_PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
# Parts of the package that have a page in the API reference, and what each page documents.
API = {
    "capsule_routing.functions": "The routing functions: pure functions of tensors.",
    "capsule_routing.modules": "Modules that own the parameters of a routing.",
    "capsule_routing.losses": "The guided losses: pure functions of tensors.",
    "fairseq_capsule.hub": "Trained models from Python.",
    "fairseq_capsule.mechanisms": "The interface of a mechanism, and the package's own.",
    "fairseq_capsule.models": "The models.",
    "capsule_routing.huggingface": "The same Transformers for Hugging Face transformers, without fairseq.",
    "fairseq_capsule.inspection": "What a model routed: arrays, views, statistics; the interface of an inspection.",
    "fairseq_capsule.extending": "Registration of a mechanism of your own.",
    "fairseq_capsule.data": "Reading of dictionaries and binarised data.",
    "fairseq_capsule.testing": "The invariants that every architecture keeps, as functions.",
    "fairseq_capsule_lab.evaluation": "Scores and translations.",
    "fairseq_capsule_lab.pages": "Pictures and pages of what a model routed.",
    "fairseq_capsule_lab.analysis": "Analyses of translations and models.",
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the API reference to the navigation."""
    reference = [{name: _page(name)} for name in API]
    config.nav.insert(-1, {"API reference": reference})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are generated, and the files of KaTeX and iframe-worker that pages load."""
    for source, target in ROOT_PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, target, content=_links_of_root(text)))
    for name, summary in API.items():
        content = f"# {name}\n\n{summary}\n{_documented(name)}"
        files.append(File.generated(config, _page(name), content=content))
    shim = (NODE_MODULES / "iframe-worker/shim/index.js").read_bytes()
    files.append(File.generated(config, WORKER, content=shim))
    for path in (KATEX / "katex.min.css", *KATEX.glob("fonts/*.woff2")):
        target = f"assets/katex/{path.relative_to(KATEX)}"
        files.append(File.generated(config, target, content=path.read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace links to files of the repository by links to their pages; a package has one page for its modules."""
    for source, target in ROOT_PAGES.items():
        markdown = markdown.replace(f"](../{source}", f"]({target}")
    packages = "capsule_routing|fairseq_capsule|fairseq_capsule_lab"
    return re.sub(rf"\]\(\.\./(?:{packages})/(\w+)/\w+\.py\)", r"](api/\1.md)", markdown)


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Render the equations that the extension arithmatex has marked."""
    marked = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
    equations = [{"tex": html.unescape(tex), "display": element == "div"} for element, tex in marked.findall(content)]
    if not equations:
        return content
    command = ["node", str(Path(__file__).parent / "katex.js"), str(KATEX / "katex.js")]
    finished = subprocess.run(command, input=json.dumps(equations), capture_output=True, text=True)
    if finished.returncode:
        raise PluginError(f"{page.file.src_uri}: an equation was not rendered: {finished.stderr.strip()}")
    rendered = iter(json.loads(finished.stdout))
    return marked.sub(lambda match: f"<{match[1]} class='equation'>{next(rendered)}</{match[1]}>", content)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Refuse a page that loads anything from the network, such as a font or a script."""
    return _without_network(output, page.url)


def on_post_template(output: str, template_name: str, config: MkDocsConfig) -> str:
    """Do the same for the page of an unknown address."""
    return _without_network(output, template_name) if template_name.endswith(".html") else output


def _without_network(output: str, url: str) -> str:
    output = output.replace(WORKER_ADDRESS, get_relative_url(WORKER, url))
    address = r'\b(?:src|href)="(?:https?:)?//'
    linked = r'rel="(?:canonical|alternate|prev|next)"'  # a browser does not load these
    loaded = re.search(rf"<(?:script|img|iframe|link(?![^>]*{linked}))\b[^>]*{address}[^>]*>", output)
    if loaded:
        raise PluginError(f"{url}: the page loads from the network: {loaded[0]}")
    return output


def _page(module: str) -> str:
    return f"api/{module.split('.')[-1]}.md"


def _documented(module: str) -> str:
    """What mkdocstrings documents: the names of `__all__`, or all of a module or package without it."""
    path = ROOT / module.replace(".", "/")
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    exported: List[str] = []
    origins = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            origins.update({alias.name: node.module for alias in node.names})
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            exported = ast.literal_eval(node.value)
    origins = {name: origin for name, origin in origins.items() if name in exported}  # in the order of the imports
    origins.update({name: module for name in exported if name not in origins})
    documented = [
        f"\n::: {origin}.{name}\n    options:\n      show_root_heading: true\n      heading_level: 2\n"
        for name, origin in origins.items()
    ]
    return "".join(documented) or f"\n::: {module}\n"


def _links_of_root(text: str) -> str:
    """The text of a file of the root, with its links as a page of docs/ has them."""
    text = re.sub(r"\]\(docs/", "](", text)
    return re.sub(r"\]\((?=[A-Z]+\.md)", "](../", text)
