# Shared by the end-to-end scripts; source it after `set -euo pipefail`.
#
# Each script runs a cluster of its own, under a directory and on ports of its own, and fails with a message or
# exits 77 with a reason when it cannot run here.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"

work=$(mktemp -d)
session=eg-e2e-$$
export EASTGUARD_CLUSTER_DIR=$work/cluster

# A block of 50 ports below those that the kernel chooses from. Whoever holds the lock has the block: this script, and
# what it leaves running.
for ((i = 0; i < 240; i++)); do
	block=$((($$ + i) % 240))
	exec 9>"${TMPDIR:-/tmp}/eastguard-e2e-$block.lock" && flock -n 9 && break
done
export EASTGUARD_BASE_PORT=$((20000 + block * 50))
cli=$EASTGUARD_CLUSTER_DIR/bin/eg-cli

at_end() { :; } # a script may put its own last steps here

cleanup() {
	local status=$?
	tmux -L "$session" kill-server 2>/dev/null || true
	bash run_cluster.sh clean >/dev/null 2>&1 || true
	at_end
	rm -rf "$work"
	exit "$status"
}
trap cleanup EXIT

skip() {
	echo "$*"
	exit 77
}

die() {
	echo "$*" >&2
	exit 1
}

needs() { command -v "$1" >/dev/null || skip "$1 is not installed"; }

# until_true SECONDS COMMAND… polls until the command succeeds.
until_true() {
	local deadline=$((SECONDS + $1))
	shift
	until "$@"; do
		((SECONDS < deadline)) || return 1
		sleep 0.05
	done
}

# terminal COMMAND runs a command in a terminal of 120 by 50 that stays open when it ends.
terminal() {
	tmux -L "$session" -f /dev/null new-session -d -x 120 -y 50 "$1"
	tmux -L "$session" set-option -g remain-on-exit on
}

screen() { tmux -L "$session" capture-pane -p -S - 2>/dev/null; }
on_screen() { screen | grep -qF -- "$1"; }
type_line() { tmux -L "$session" send-keys -l -- "$1" && tmux -L "$session" send-keys Enter; }

# masked replaces what differs from run to run: times, ports, nodes that were chosen, and the blank lines below the last text.
masked() {
	sed -E \
		-e 's/[0-9]+(\.[0-9]+)? (ms|s|µs)\b/<time>/g' \
		-e 's/[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}/<clock>/g' \
		-e 's/127\.0\.0\.1:[0-9]+/<address>/g' \
		-e 's/leader n[0-9]+/leader <node>/g' -e '/acked by/s/ n[0-9]+/ <node>/g' \
		-e "s#$EASTGUARD_CLUSTER_DIR#<cluster>#g" \
		-e 's/[[:space:]]+$//' | sed -e ':a' -e '/^\n*$/{$d;N;ba' -e '}'
}

# same FILE compares standard input with scripts/e2e/testdata/FILE, or rewrites that with EASTGUARD_REWRITE=1.
same() {
	local want=scripts/e2e/testdata/$1
	cat >"$work/got"
	if [[ -n ${EASTGUARD_REWRITE:-} ]]; then
		cp "$work/got" "$want"
	fi
	diff -u "$want" "$work/got" || die "the screen differs from $want"
}
