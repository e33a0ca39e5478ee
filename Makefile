# A target installs what it needs in .venv, unless that is done. A prerequisite install-SET is an extra of pyproject.toml.
.PHONY: help install demo demo-summarization test test-integration test-all test-browser coverage docs package \
	lint lint-python lint-types lint-shell lint-prose clean

# pip compiles no library. Python keeps what it compiles at the first import, also in containers that turn this off.
export PYTHONDONTWRITEBYTECODE =

# One process for each core; the tests of a file share what they train, so they stay together. The models are too small for
# threads. Without the last option the files with few tests start last, and these take longest.
PYTEST = OMP_NUM_THREADS=1 .venv/bin/python -m pytest --numprocesses auto --maxprocesses 8 --dist loadfile --no-loadscope-reorder

# Files that follow docs/style.md. Add what you rewrite.
PROSE = README.md CHANGELOG.md CODE_OF_CONDUCT.md CONTRIBUTING.md SECURITY.md Makefile pyproject.toml mkdocs.yml .github .ci docs/*.md \
	capsule_routing fairseq_capsule fairseq_capsule_lab experiments/*.* experiments/tables experiments/benchmarks experiments/workflow \
	scripts/*.sh scripts/*.py scripts/site/hooks.py configs examples findings tests

help:            ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  make \1\t/' | expand -t 28

install:         ## create .venv with the pinned versions of all that the targets need
	@scripts/install.sh dev

install-%:
	@scripts/install.sh $(subst -, ,$*)

demo: install-train-plot    ## train a small capsule-Transformer on the embedded corpus, translate with it, draw its attention
	@scripts/demo.sh demo

demo-summarization: install-train-summarization ## train a small GRET to write headlines of short Chinese news, and score them by ROUGE
	@scripts/demo.sh --summarize demo-summarization

test: install-test    ## the test suite, without whole commands and without a browser
	$(PYTEST) -m "not slow and not browser" --ignore tests/integration

test-integration: install-test  ## the tests of whole commands: they prepare data, train, translate, score, make tables
	$(PYTEST) -m "not slow" tests/integration

test-all: install-test-alignment-huggingface-slurm  ## both test suites, and the slow tests
	$(PYTEST)

test-browser: install-test  ## the tests of the inspector's pages; as root it installs Debian's chromium if that is missing
	@scripts/install-browser.sh
	.venv/bin/python -m pytest -m browser tests/pages

coverage: install-test  ## both test suites with the lines and branches that it covers: htmlcov/index.html
	$(PYTEST) -m "not slow" --cov --cov-report=term --cov-report=html

docs: install-docs ## build the site in site/, warnings are errors; npm installs KaTeX for its equations
	@scripts/docs.sh site

package: install-package ## build the wheel and the sdist in dist/, check them, train a step with the installed wheel
	@.venv/bin/python scripts/check_package.py dist

lint: lint-python lint-types lint-shell lint-prose  ## the static checks, which pre-commit runs too

lint-python: install-lint
	.venv/bin/ruff check .

lint-types: install-lint
	.venv/bin/mypy

lint-shell: install-lint
	.venv/bin/shellcheck scripts/*.sh experiments/*.sh experiments/benchmarks/*.sh examples/slurm/train.sbatch findings/*.sh .ci/run

lint-prose: install-lint
	.venv/bin/codespell
	.venv/bin/codespell --dictionary docs/banned-words.txt --ignore-regex '`[^`]*`' --skip '*/parallel/*,*/ja-en/*' $(PROSE)

clean:           ## remove the demos, the site, the built package and the coverage report
	rm -rf demo demo-summarization site build dist htmlcov .coverage
