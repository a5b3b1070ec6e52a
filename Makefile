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
CHOICE := $(if $(ALL),all,$(PLUGIN))
SELECTION := PYTHONPATH=tests $(BIN)/python -m support.runs.selection
JAVA := $(if $(JAVA_HOME),$(JAVA_HOME)/bin/java,java)

help:
	@echo 'make install | demo | test | lint | check | prove | interop | first-replica | bench | docs | tables | pictures | release | constraints | clean'

install: .venv/installed
	@$(BIN)/python -m calque.sandbox.install

# Tests run services that the demo does not have. What Kerberos needs is compiled, where the system has what for.
.PHONY: install-tests
install-tests: install .venv/installed-tests
	@PYTHONPATH=tests $(BIN)/python -m support.services.install tests
	@$(BIN)/python -c 'import gssapi' 2>/dev/null || ! command -v krb5-config >/dev/null \
	  || $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[kerberos]'

# What most deployments use; the others have packages that are large, or have to be compiled.
EXTRAS := activemq,audit,glue,kafka,s3,shell

.venv/installed: pyproject.toml constraints.txt
	@[ -n '$(PYTHON)' ] || { echo 'calque: Python 3.11 or newer is missing. calque is written in it.' \
	  'Install it (Debian, Ubuntu: apt install python3 python3-venv), or say make PYTHON=/path/to/python.' >&2; exit 69; }
	@'$(PYTHON)' -c 'import ensurepip, venv' 2>/dev/null || { echo 'calque: The module venv is missing.' \
	  'The virtual environment is made with it. Install it (Debian, Ubuntu: apt install python3-venv).' >&2; exit 69; }
	@version=$$('$(JAVA)' -version 2>&1 | sed -nE 's/.* version "([0-9]+).*/\1/p' || true); \
	  [ "$${version:-0}" -ge 17 ] || { echo 'calque: Java 17 is missing. Spark and the metastores run on it.' \
	  'Install it (Debian, Ubuntu: apt install openjdk-17-jre-headless), or set JAVA_HOME to one.' >&2; exit 69; }
	'$(PYTHON)' -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[$(EXTRAS),sandbox]'
	@touch $@

# What tests, linters and benchmarks import besides.
.venv/installed-tests: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[$(EXTRAS),sandbox,dev,clusters,ssh]'
	@touch $@

demo: install
	$(BIN)/calque demo

# The kernel's tests, a smoke of each plugin, and in full what was changed; with ALL=1 everything, with PLUGIN=name that
# one (tests/README.md).
test: install-tests
	$(BIN)/python -m pytest $$($(SELECTION) arguments quick $(CHOICE)) -n $(WORKERS) --maxschedchunk 1
	$(BIN)/python -m pytest $$($(SELECTION) arguments servers $(CHOICE)) -n $(WORKERS) --dist loadfile --no-loadscope-reorder
	@$(SELECTION) left-out $(CHOICE)
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

lint: .venv/installed-tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint
	$(BIN)/python -m pytest $$($(SELECTION) arguments quick all) --hypothesis-profile=check -n $(WORKERS) --maxschedchunk 1

# Proofs take long: each of these parts an hour at most. `make prove PART=live` runs one, `make prove` one after the other;
# EXAMPLES=20000 has each property try so many.
PROOFS := properties mutants deaths failpoints live acid shapes spark files marked
prove: install-tests
	@for part in $(or $(PART),$(PROOFS)); do $(MAKE) --no-print-directory prove-$$part; done
ON_SERVERS := -n $(WORKERS) --dist loadfile --no-loadscope-reorder
prove-properties: GIVEN = $$($(SELECTION) arguments property all) -n $(WORKERS) --maxschedchunk 1
prove-mutants: GIVEN = tests/kernel/unit/test_mutants.py
prove-deaths: GIVEN = $(addprefix tests/kernel/whole/,test_crashes.py test_silence.py test_consistency.py) \
	-n $(WORKERS) --maxschedchunk 1
prove-failpoints: GIVEN = tests/prove/test_long_failpoints.py -n $(WORKERS) --maxschedchunk 1
prove-live: GIVEN = $(wildcard tests/prove/test_*live.py tests/prove/test_long_flow.py tests/prove/test_long_links.py) \
	tests/prove/test_recorded_states.py $(ON_SERVERS)
prove-acid: install-interop
prove-acid: GIVEN = tests/interop/test_hive_acid.py
prove-shapes: GIVEN = $(wildcard tests/prove/test_*shapes*.py tests/prove/test_*renames.py) $(ON_SERVERS)
prove-spark: GIVEN = $(addprefix tests/prove/,test_spark_cluster_deaths.py test_kerberos.py test_airflow.py) $(ON_SERVERS)
# Files that play more in proofs, or whose tests build on each other. Of others tests with the marker `prove` are run.
FILES := $(addprefix tests/kernel/integration/,test_delta_tables.py test_one_objects_trouble.py test_sandbox.py \
	test_small_files.py) tests/plugins/clusters/integration/test_clusters.py \
	$(addprefix tests/plugins/delta_replicas/integration/,test_delta_live.py test_delta_replicas.py)
prove-files: GIVEN = $(FILES) $(ON_SERVERS)
prove-marked: GIVEN = $$($(SELECTION) arguments servers all) -m prove $(addprefix --ignore=,$(FILES)) $(ON_SERVERS)
prove-%:
	$(if $(EXAMPLES),CALQUE_EXAMPLES=$(EXAMPLES) )$(BIN)/python -m pytest $(GIVEN) \
	  --hypothesis-profile=prove --timeout=0 -o faulthandler_timeout=0

# Hive itself dumps and loads, and reads and writes ACID tables.
.PHONY: interop install-interop
install-interop: install-tests
	@PYTHONPATH=tests $(BIN)/python -m support.services.install interop
bench: install-interop
interop: install-interop
	$(BIN)/python -m pytest tests/interop --timeout=0 -o faulthandler_timeout=0

# README's commands, from the wheel in an environment of its own; prints what a reader of README sees.
.PHONY: first-replica
first-replica: install-tests
	$(BIN)/python -m pytest tests/welcome -rP

bench: install-tests
	$(BIN)/python -m pytest tests/bench --timeout=0 -o faulthandler_timeout=0 -s

.PHONY: release
release: install site
	rm -rf dist
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist/*.whl

# The tables, the help and the picture of docs/ that come from the code. A unit test fails where they are old.
.PHONY: tables
tables: .venv/installed
	PYTHONPATH=docs $(BIN)/python docs/from_code.py

# Of the demo's page, for docs/tour.md. Needs chromium and its driver.
.PHONY: pictures
pictures: install-tests
	CALQUE_PICTURES='$(CURDIR)/docs/pictures' $(BIN)/python -m pytest tests/kernel/integration/test_demo.py -k page

docs: site .venv/installed-tests
	$(BIN)/python -m pytest -q tests/kernel/unit/test_docs.py

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
	.cache/constraints/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[all,kerberos,sandbox,dev,docs]'
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
	$(LOCK) $(addprefix --extra ,activemq audit clusters glue hdfs kafka s3 shell ssh) -o deploy/requirements.txt pyproject.toml
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
