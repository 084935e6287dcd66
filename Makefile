# `make` alone lists the targets. Every target works from a fresh clone.

GOLANGCI_LINT_VERSION := v2.15.0

MODULES := . ./metrics ./example-game
LINT    := .bin/golangci-lint

# The packages whose coverage is held, and the least that each must have.
MODULE       := github.com/shardhop/shardhop
COVERED      := $(MODULE) $(addprefix $(MODULE)/,healthcache middleware sessionstore shardrouter)
MIN_COVERAGE := 85

# More flags for `go test`.
TESTFLAGS :=

empty :=
comma := ,
space := $(empty) $(empty)

.DEFAULT_GOAL := help
.PHONY: help setup test cover vet lint fmt tidy bench bench-fleet chaos clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install the servers that the tests run (Debian packages)
	@./.ci/setup

# `work` is every module of go.work: the library, its metrics and the example game.
test: ## run all tests of all modules with the race detector
	go test -race -timeout 20m $(COVERFLAGS) $(TESTFLAGS) work

cover: COVERFLAGS = -coverprofile=cover.out -coverpkg=$(subst $(space),$(comma),$(COVERED))
cover: test ## run all tests and hold the coverage of the library's packages
	./.ci/coverage cover.out $(MIN_COVERAGE) $(COVERED)

vet: ## run go vet over all modules
	go vet work

lint: $(LINT) ## run golangci-lint over all modules
	$(LINT) run $(foreach m,$(MODULES),$(m)/...)

# Built from source, which takes a few minutes once, unless the right version is
# installed already. GOWORK=off: the linter is no part of this workspace.
$(LINT):
	@mkdir -p .bin
	@if golangci-lint version 2>/dev/null | grep -qw $(patsubst v%,%,$(GOLANGCI_LINT_VERSION)); then \
		ln -sf "$$(command -v golangci-lint)" $@; \
	else \
		echo "building golangci-lint $(GOLANGCI_LINT_VERSION)"; \
		GOWORK=off GOBIN=$(CURDIR)/.bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION); \
	fi

fmt: ## format all Go files
	gofmt -w .

tidy: ## tidy the go.mod of every module
	$(foreach m,$(MODULES),(cd $(m) && GOWORK=off go mod tidy) && )true

bench: ## run the benchmarks
	go test -run '^$$' -bench . -benchmem ./...

bench-fleet: ## print the figures of docs/health.md, of fleets of the game on real servers
	go test ./example-game/internal/fleet -run '^$$' -bench . -benchtime 1x

# Some forty minutes. ROUNDS=1 is what the tests do.
ROUNDS := 20

chaos: ## break database servers under a crowd of players, and write docs/chaos.md
	go test ./example-game/internal/chaos -run '^TestNothingIsLostOrDoubled$$' -v -count=1 -timeout 90m \
		-rounds $(ROUNDS) -most 8s -table $(CURDIR)/docs/chaos.md

clean: ## remove what the other targets made
	rm -rf .bin cover*.out
