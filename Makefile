# `make run` serves the page, `make test` runs the tests; each first makes what it needs.

VENV ?= .venv
# The interpreter to build $(VENV) with; left empty, the newest on PATH that torch has builds for.
PYTHON ?=
# Passed on: make run ARGS="--port 8080", make test ARGS="-k heads"
ARGS ?=

.PHONY: help run test lint clean browser

help:  ## list these commands
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 16

run: $(VENV)/installed  ## serve the page and print its address
	@"$(VENV)/bin/explorer" app --no-browser $(ARGS)

# Two at once, since most tests are one thread's work; ARGS="-n 0" runs them one after the other.
test: lint browser  ## run every test
	"$(VENV)/bin/python" -m pytest -n 2 $(ARGS)

lint: $(VENV)/installed-test  ## check style and types
	"$(VENV)/bin/python" -m ruff check .
	"$(VENV)/bin/python" -m mypy

clean:  ## remove the virtual environment
	@if [ -f "$(VENV)/pyvenv.cfg" ]; then rm -rf "$(VENV)"; fi

# The stamps are written last, so an interrupted install is taken up again by the next make.
$(VENV)/installed: pyproject.toml
	@$(make_venv)
	"$(VENV)/bin/python" -m pip install -e .
	@touch $@

$(VENV)/installed-test: pyproject.toml
	@$(make_venv)
	"$(VENV)/bin/python" -m pip install -e '.[test]'
	@touch "$(VENV)/installed" $@

# A virtual environment whose pip answers is kept, whatever is in it; a half-made one is made anew.
define make_venv
"$(VENV)/bin/python" -m pip --version >/dev/null 2>&1 && exit; \
[ ! -f "$(VENV)/pyvenv.cfg" ] || clear=--clear; \
for python in $(or $(PYTHON),python3.14 python3.13 python3.12 python3.11 python3); do \
  version=$$("$$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue; \
  found="$$found $$python is $$version;"; \
  "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || continue; \
  "$$python" -c 'import ensurepip, venv' 2>/dev/null || { no_venv=$${no_venv:-$$version}; continue; }; \
  exec "$$python" -m venv $$clear "$(VENV)"; \
done; \
[ "$$(id -u)" = 0 ] || sudo="sudo "; \
get="    $${sudo}apt-get update && $${sudo}apt-get install"; \
if [ -n "$$no_venv" ]; then \
  echo "Python $$no_venv is here without its venv module. Get it with" >&2; \
  echo "$$get python$$no_venv-venv" >&2; \
else \
  echo "explorer needs Python 3.11 or newer;$${found:- found none;} on Debian 12, Ubuntu 24.04 or later get it with" >&2; \
  echo "$$get python3-venv" >&2; \
  echo "One that is not on PATH can be named: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; \
fi; \
exit 1
endef

# A Chromium that starts, or one Playwright downloads, or the distribution's. Ubuntu's is a snap that
# containers cannot run, so Playwright's comes first; only root may add the libraries it needs.
browser: $(VENV)/installed-test
	@find() { "$(VENV)/bin/python" tests/browser/chromium.py; }; \
	if find; then exit; fi; \
	echo "No Chromium or Chrome starts here: getting one."; \
	if [ "$$(id -u)" = 0 ]; then with_deps=--with-deps; fi; \
	"$(VENV)/bin/python" -m playwright install $$with_deps chromium; \
	if find; then exit; fi; \
	if [ "$$(id -u)" = 0 ]; then apt-get update && apt-get install -y chromium; fi; \
	if find; then exit; fi; \
	echo "The browser tests need a Chromium. Install one and name it in CHROMIUM, or get Playwright's with" >&2; \
	echo "    sudo $(VENV)/bin/python -m playwright install-deps chromium" >&2; \
	exit 1
