#!/usr/bin/env bash
# eg-top on three nodes: one is killed, which is shown with what follows from it; all are killed, and come back; the
# terminal is as it was after every end.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
needs tmux

export XDG_STATE_HOME=$work/state XDG_CONFIG_HOME=$work/config LC_ALL=C.UTF-8
seeds=127.0.0.1:$EASTGUARD_BASE_PORT,127.0.0.1:$((EASTGUARD_BASE_PORT + 10)),127.0.0.1:$((EASTGUARD_BASE_PORT + 20))
eg() { "$cli" -s "$seeds" "$@"; }

bash run_cluster.sh >/dev/null
top=$EASTGUARD_CLUSTER_DIR/bin/eg-top
eg create-topic orders 3 >/dev/null

# One look, without a screen.
"$top" -s "$seeds" --once </dev/null >"$work/once" || { cat "$work/once" && die "one look at a healthy cluster does not exit 0"; }
grep -q 'n3' "$work/once" || { cat "$work/once" && die "one look does not show n3"; }
"$top" -s "$seeds" --once -o json </dev/null | grep -q '"schema": "top/1"' || die "one look is no document"
"$top" -s 127.0.0.1:1 --once </dev/null >/dev/null 2>"$work/nobody" && die "nobody answers, and the exit code is 0" || code=$?
((code == 3)) || die "nobody answers: exit $code"

# What is seen is recorded, too. The shell around it shows the exit code and the terminal's settings.
terminal "bash --norc"
shown() { tmux -L "$session" capture-pane -p | grep -qE -- "$1"; }
waits() { until_true "$1" shown "$2" || { tmux -L "$session" capture-pane -p && die "not on the screen: $2"; }; }
press() { tmux -L "$session" send-keys "$@"; }
begin() {
	type_line "clear; stty -g >$work/before; $top -s $seeds $*; echo ended with \$?; stty -g >$work/after"
	waits 20 'live 3/3'
}
ends() { # CODE
	waits 20 "ended with $1"
	until_true 10 test -s "$work/after"
	diff "$work/before" "$work/after" || die "the terminal is not as it was"
	rm "$work/after"
}
# The id of the process that the shell in the terminal runs.
child() { ps -o pid= --ppid "$(tmux -L "$session" display -p '#{pane_pid}')" | tr -d ' '; }

begin --record "$work/incident.jsonl"
(for ((i = 0; i < 4000; i++)); do echo "key$i:value$i" && sleep 0.02; done | eg publish orders -K : >/dev/null 2>&1) 9>&- &
load=$!
at_end() { kill "$load" 2>/dev/null || true; }

bash run_cluster.sh kill 2 >/dev/null
press 2
waits 20 'n2.*(S|suspect|SUSPECT)|(◐|✖).*n2|n2 (suspect|dead)'
press 1
waits 30 'n2 +✖'
press 6
waits 20 'FAILURE'
press 8
waits 20 'LEADER|SEAL'

for size in '80 24' '200 60' '120 40'; do
	tmux -L "$session" resize-window -x "${size% *}" -y "${size#* }"
	waits 10 '8 ?Events\]'
done

for node in 1 3; do bash run_cluster.sh kill "$node" >/dev/null; done
press 1
waits 10 'No broker reachable'
bash run_cluster.sh start >/dev/null
press r
waits 30 'live 3/3'
press q
ends 0
kill "$load" 2>/dev/null || true

# Every other end leaves the terminal as it was.
for how in TERM HUP; do
	begin
	kill -"$how" "$(child)"
	case $how in
	TERM) ends 143 ;;
	HUP) ends 129 ;;
	esac
done
begin
press C-c
ends 0

# The incident, once more, from the recording.
"$top" --replay "$work/incident.jsonl" --once --view events --filter 'n2' --size 140x60 </dev/null >"$work/replayed" || true
grep -qE 'n2 .*(suspect|dead)' "$work/replayed" || { cat "$work/replayed" && die "the recording does not show the death of n2"; }
