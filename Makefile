# Needed beforehand: Python 3.11 or newer and Java 17. Everything else is put into .venv and .cache of this checkout.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help install demo test lint check prove bench docs site constraints clean

BIN := .venv/bin
# Processes that run tests.
WORKERS ?= 2
# What tests try depends on their seed alone.
test check prove: export PYTHONHASHSEED := 0
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
# What makes a browser ask another host when it shows a page.
REQUESTS := <(script|link|img|iframe|source)[^>]*(src|href)=.(https?:)?//|(url\(|@import).?(https?:)?//
JAVA := $(if $(JAVA_HOME),$(JAVA_HOME)/bin/java,java)

help:
	@echo 'make install | demo | test | lint | check | prove | interop | bench | docs | pictures | release | constraints | clean'

install: .venv/installed
	@$(BIN)/python -m calque.sandbox.install

# Tests run services that the demo does not have. What Kerberos needs is compiled, where the system has what for.
.PHONY: install-tests
install-tests: install
	@PYTHONPATH=tests $(BIN)/python -m support.services.install tests
	@$(BIN)/python -c 'import gssapi' 2>/dev/null || ! command -v krb5-config >/dev/null \
	  || $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[kerberos]'
test prove bench: install-tests

.venv/installed: pyproject.toml constraints.txt
	@[ -n '$(PYTHON)' ] || { echo 'calque: Python 3.11 or newer is missing. calque is written in it.' \
	  'Install it (Debian, Ubuntu: apt install python3 python3-venv), or say make PYTHON=/path/to/python.' >&2; exit 69; }
	@'$(PYTHON)' -c 'import ensurepip, venv' 2>/dev/null || { echo 'calque: The module venv is missing.' \
	  'The virtual environment is made with it. Install it (Debian, Ubuntu: apt install python3-venv).' >&2; exit 69; }
	@version=$$('$(JAVA)' -version 2>&1 | sed -nE 's/.* version "([0-9]+).*/\1/p' || true); \
	  [ "$${version:-0}" -ge 17 ] || { echo 'calque: Java 17 is missing. Spark and the metastores run on it.' \
	  'Install it (Debian, Ubuntu: apt install openjdk-17-jre-headless), or set JAVA_HOME to one.' >&2; exit 69; }
	'$(PYTHON)' -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[sandbox,dev,clusters,ssh]'
	@touch $@

demo: install
	$(BIN)/calque demo

test: install
	$(BIN)/python -m pytest tests/unit tests/whole tests/property -n $(WORKERS) --maxschedchunk 1
	$(BIN)/python -m pytest tests/contract tests/integration -n $(WORKERS) --dist loadfile --no-loadscope-reorder
	@$(MAKE) --no-print-directory left-out

# Says, in one line, which tests lacked something that only the system's administrator can install.
.PHONY: left-out
left-out:
	@left=''; \
	  { command -v chromium && command -v chromedriver; } >/dev/null \
	    || left+=' The page in a browser (apt install chromium chromium-driver).'; \
	  $(BIN)/python -c 'import gssapi' 2>/dev/null \
	    || left+=' Kerberos (apt install gcc libc6-dev python3-dev libkrb5-dev, then make install-tests).'; \
	  [ -z "$$left" ] || echo "Left out were tests of:$$left"

lint: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint
	$(BIN)/python -m pytest tests/unit tests/whole tests/property --hypothesis-profile=check -n $(WORKERS) --maxschedchunk 1

# Files that play more in proofs, or whose tests build on each other. Of others it runs tests with the marker `prove`.
WHOLE := $(addprefix tests/integration/,test_clusters.py test_delta_live.py test_delta_replicas.py test_delta_tables.py \
	test_one_objects_trouble.py test_sandbox.py test_small_files.py)
prove: install
	$(BIN)/python -m pytest tests/property $(wildcard tests/prove) tests/unit/test_mutants.py tests/whole/test_crashes.py \
	  tests/whole/test_silence.py tests/whole/test_consistency.py $(WHOLE) \
	  --hypothesis-profile=prove --timeout=0 -o faulthandler_timeout=0
	$(BIN)/python -m pytest tests/contract tests/integration -m prove $(addprefix --ignore=,$(WHOLE)) \
	  --hypothesis-profile=prove --timeout=0 -o faulthandler_timeout=0

# Hive itself dumps and loads.
.PHONY: interop install-interop
install-interop: install-tests
	@PYTHONPATH=tests $(BIN)/python -m support.services.install interop
bench: install-interop
interop: install-interop
	$(BIN)/python -m pytest tests/interop --timeout=0 -o faulthandler_timeout=0

bench: install
	$(BIN)/python -m pytest tests/bench --timeout=0 -o faulthandler_timeout=0 -s

.PHONY: release
release: install site
	rm -rf dist
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist/*.whl

# Of the demo's page, for docs/tour.md. Needs chromium and its driver.
.PHONY: pictures
pictures: install
	CALQUE_PICTURES='$(CURDIR)/docs/pictures' $(BIN)/python -m pytest tests/integration/test_demo.py -k page

docs: site
	$(BIN)/python -m pytest -q tests/unit/test_docs.py

site: .venv/docs
	rm -rf site
	$(BIN)/sphinx-build --fail-on-warning --keep-going --nitpicky --quiet --fresh-env -d .cache/doctrees docs site
	@! grep -rnoE '$(REQUESTS)' --include=*.html --include=*.css site \
	  || { echo 'calque: Pages of site/ request something from another host. See above.' >&2; exit 1; }
	@echo 'The pages are in site/index.html.'

.venv/docs: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	@touch $@

# Tries out what the bounds in pyproject.toml permit today. Whoever calls it runs `make test` before the commit.
constraints:
	rm -rf .cache/constraints
	'$(PYTHON)' -m venv .cache/constraints
	.cache/constraints/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[sandbox,dev,docs,hdfs,clusters,kerberos,ssh]'
	@{ echo '# Made by `make constraints`: the versions that `make install` takes.'; \
	  .cache/constraints/bin/python -m pip freeze --disable-pip-version-check --exclude-editable; } >constraints.txt
	rm -rf .cache/constraints

# What the image installs besides calque, with hashes: versions of constraints.txt, of all machines that run Linux.
LOCK := .cache/lock/bin/uv pip compile --quiet --constraint constraints.txt --generate-hashes --no-header --no-annotate \
	--python-version 3.11 --python-platform linux
.PHONY: lock
lock:
	rm -rf .cache/lock
	'$(PYTHON)' -m venv .cache/lock
	.cache/lock/bin/python -m pip install --quiet --disable-pip-version-check 'uv>=0.8,<1'
	$(LOCK) --extra clusters --extra hdfs --extra ssh -o deploy/requirements.txt pyproject.toml
	$(LOCK) -o deploy/build-requirements.txt deploy/build-requirements.in
	rm -rf .cache/lock

# Of the published files that the sandbox has fetched. Whoever changes the manifest compares what changes here with what
# the publishers say.
.PHONY: checksums
checksums: .venv/installed
	$(BIN)/python -m calque.sandbox.checksums
	PYTHONPATH=tests $(BIN)/python -m support.services.checksums

clean:
	rm -rf site .venv .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
