# Each of these creates .venv and installs what it needs when that is missing.
.PHONY: help install demo demo-summarization test test-all lint clean

# A process a core; the files' tests stay together, since they share what they train. Models are too small for threads.
PYTEST = OMP_NUM_THREADS=1 .venv/bin/python -m pytest --numprocesses auto --maxprocesses 8 --dist loadfile

help:            ## say what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  make \1\t/' | expand -t 28

install:         ## create .venv with the pinned versions
	@scripts/install.sh

demo: install    ## train a small capsule-Transformer on the embedded corpus, translate with it, draw its attention
	@scripts/demo.sh demo

demo-summarization: install  ## train a small GRET to write headlines of short Chinese news, and score them by ROUGE
	@scripts/demo-summarization.sh demo-summarization

test: install    ## the test suite
	@scripts/install-browser.sh
	$(PYTEST) -m "not slow"

test-all: install  ## with the slow tests too
	@scripts/install-browser.sh
	$(PYTEST)

lint: install    ## what reviewers would otherwise have to say
	.venv/bin/ruff check .
	.venv/bin/mypy

clean:           ## remove the demos' files
	rm -rf demo demo-summarization
