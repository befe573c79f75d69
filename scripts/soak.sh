#!/usr/bin/env bash
# The long counts: every test with EASTGUARD_SOAK=1 (500 simulated clusters are among them), more simulated clusters under
# the race detector, clusters of real processes and kill -9 again and again, chaos in namespaces, every fuzz target for a
# while, and the benchmark. Two hours or so on two cores. SIM_RUNS (default 500), SIM_RACE_RUNS (default 50),
# HISTORY_ROUNDS (default 20), KILL9_ROUNDS (default 100), CHAOS_TIME (default 10m) and FUZZ_TIME (default 30s) change the
# lengths.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fuzz_time=${FUZZ_TIME:-30s}
go build -o "$results/tally" ./scripts/internal/tally

heading "long tests"
EASTGUARD_SOAK=1 EASTGUARD_SIM_RUNS=${SIM_RUNS:-500} EASTGUARD_KILL9_ROUNDS=1 go_tests -timeout 60m -tags invariants ./...

heading "simulated clusters under the race detector, ${SIM_RACE_RUNS:-50} seeds"
EASTGUARD_SIM_RUNS=${SIM_RACE_RUNS:-50} go_tests -timeout 60m -count 1 -race -tags invariants ./internal/sim

heading "clusters of processes, ${HISTORY_ROUNDS:-20} rounds"
go_tests -timeout 60m -count "${HISTORY_ROUNDS:-20}" -run '^TestCluster' ./cmd/eastguard

heading "kill -9, ${KILL9_ROUNDS:-100} rounds"
EASTGUARD_KILL9_ROUNDS=${KILL9_ROUNDS:-100} go_tests -timeout 60m -count 1 -run '^TestKill9$' ./cmd/eastguard

heading "chaos, ${CHAOS_TIME:-10m}"
step "chaos" bash scripts/chaos.sh -for "${CHAOS_TIME:-10m}"

heading "fuzzing, $fuzz_time a target"
while IFS=: read -r file target; do
	step "$target" go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzz_time" -fuzzminimizetime 1x "./$(dirname "$file")"
done < <(grep -rhoE --include='*_test.go' -H '^func Fuzz[A-Za-z0-9_]*' internal sdk server cli tui cmd scripts | sed 's/func //' | sort)

heading "benchmark"
bash scripts/bench.sh

summary
