"""axe-core, which finds problems of pages for people with disabilities."""

from contextlib import contextmanager
from pathlib import Path

import pytest

AXE = Path(__file__).resolve().parents[2] / ".venv/axe/node_modules/axe-core/axe.min.js"
SCHEMES = ("light", "dark")
needs_axe = pytest.mark.skipif(not AXE.exists(), reason="no axe-core: `make test-browser` installs it by npm")


def serious_problems(browser):
    """Return the serious problems of the document that the browser shows, without those inside its frames."""
    browser.execute_script(AXE.read_text(encoding="utf-8"))
    found = browser.execute_async_script(
        "axe.run({ iframes: false }).then((found) => arguments[0](found.violations.map((each) =>"
        " [each.impact, each.id, each.nodes[0].html, each.nodes[0].failureSummary])))"
    )
    return [each for each in found if each[0] in ("serious", "critical")]


@contextmanager
def shown_in(browser, scheme):
    """Show pages in the light or dark theme of the system."""
    command = browser.execute_cdp_cmd
    command("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    try:
        yield
    finally:
        command("Emulation.setEmulatedMedia", {"features": []})
