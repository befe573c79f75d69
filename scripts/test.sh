#!/usr/bin/env bash
# The quick tier: everything that a change must pass, in a few minutes on two cores. The last line is
# "N passed, N failed[, N skipped]". scripts/soak.sh runs the long counts.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

tool() { go tool -modfile=scripts/tools/go.mod "$@"; }

formatted() {
	local files
	files=$(git ls-files -co --exclude-standard '*.go' 2>/dev/null || find . -name '*.go')
	files=$(xargs -r go tool -modfile=scripts/tools/go.mod gofumpt -extra -l <<<"$files")
	[[ -z $files ]] || { printf 'not formatted (gofumpt -extra -w FILE):\n%s\n' "$files" && return 1; }
}

scripts_parse() {
	local f
	for f in run_cluster.sh .ci/run scripts/*.sh scripts/e2e/*.sh; do bash -n "$f"; done
}

heading "what the end-to-end tests need"
install tmux tmux
install strace strace
install iproute2 ip
go build -o "$results/tally" ./scripts/internal/tally

heading "static checks"
step "scripts parse" scripts_parse
step "go build" go build ./...
step "gofumpt" formatted
step "go vet" go vet ./...
step "go vet, with assertions" go vet -tags invariants ./internal/... ./sdk/... ./server/...
step "staticcheck" tool staticcheck ./...
step "architecture" go test -count=1 ./internal/

# The kill -9 rounds run once, in the second pass; assertions are on where the race detector is.
heading "Go tests"
EASTGUARD_KILL9_ROUNDS=1 go_tests -count=1 -vet=off -timeout 10m ./...

heading "Go tests, race detector and assertions on"
EASTGUARD_KILL9_ROUNDS=10 go_tests -count=1 -vet=off -timeout 15m -race -tags invariants ./...

heading "end to end"
for script in scripts/e2e/*.sh; do
	[[ $script == */common.sh ]] || step "$(basename "$script" .sh)" bash "$script"
done

summary
