#!/usr/bin/env bash
# The long counts: every test with EASTGUARD_SOAK=1, every fuzz target for a while, kill -9 again and again, and
# the benchmark. An hour or so on two cores. FUZZ_TIME (default 30s) and KILL9_ROUNDS (default 100) change the lengths.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fuzz_time=${FUZZ_TIME:-30s}
go build -o "$results/tally" ./scripts/internal/tally

heading "long tests"
EASTGUARD_SOAK=1 EASTGUARD_KILL9_ROUNDS=1 go_tests -timeout 60m -tags invariants ./...

heading "kill -9, ${KILL9_ROUNDS:-100} rounds"
EASTGUARD_KILL9_ROUNDS=${KILL9_ROUNDS:-100} go_tests -timeout 60m -count 1 -run '^TestKill9$' ./cmd/eastguard

heading "fuzzing, $fuzz_time a target"
while IFS=: read -r file target; do
	step "$target" go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzz_time" -fuzzminimizetime 1x "./$(dirname "$file")"
done < <(grep -rhoE --include='*_test.go' -H '^func Fuzz[A-Za-z0-9_]*' internal sdk server cli cmd scripts | sed 's/func //' | sort)

heading "benchmark"
bash scripts/bench.sh

summary
