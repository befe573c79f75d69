# Shared by the scripts here; source it after `set -euo pipefail`.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

passed=0 failed=0 skipped=0
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

heading() { printf '\n== %s\n' "$*"; }

# step NAME COMMAND… runs one check and counts it. Its output is shown when it fails, and its exit code 77 means
# that it could not run here: it has said why.
step() {
	local name=$1 status=0 began=$SECONDS
	shift
	"$@" >"$results/out" 2>&1 || status=$?
	case $status in
	0) passed=$((passed + 1)) && printf 'ok    %s  %ds\n' "$name" $((SECONDS - began)) ;;
	77) skipped=$((skipped + 1)) && printf 'SKIP  %s: %s\n' "$name" "$(tail -n 1 "$results/out")" ;;
	*)
		failed=$((failed + 1))
		cat "$results/out"
		printf 'FAIL  %s  %ds\n' "$name" $((SECONDS - began))
		;;
	esac
}

# go_tests ARGUMENTS… runs go test and adds its tests to the counts.
go_tests() {
	local p=0 f=0 s=0
	rm -f "$results/counts"
	go test -json "$@" 2>&1 | "$results/tally" -counts "$results/counts" || true
	if read -r p f s 2>/dev/null <"$results/counts"; then
		passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	else
		failed=$((failed + 1)) && echo "FAIL  go test $*"
	fi
}

# install PACKAGE COMMAND installs a Debian package for a missing command, where that is possible.
install() {
	command -v "$2" >/dev/null && return
	if [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
		DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$1" >/dev/null 2>&1 ||
			{ apt-get update -q >/dev/null 2>&1 && DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$1" >/dev/null 2>&1; } || true
	fi
	command -v "$2" >/dev/null || printf '\n*** %s is missing and could not be installed: the tests that need it are skipped ***\n' "$2"
}

# summary prints the last line and gives the exit code.
summary() {
	local line="$passed passed, $failed failed"
	((skipped == 0)) || line+=", $skipped skipped"
	printf '\n%s\n' "$line"
	((failed == 0))
}
