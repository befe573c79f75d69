#!/usr/bin/env bash
# eg-top on three nodes: one is paused, one is killed, which is shown with what follows from it; two of them; all, and all
# come back. The terminal is as it was after every end.
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
# Each view has what it would have on a screen; who has read enough may close the pipe.
has() { # VIEW TEXT
	"$top" -s "$seeds" --once --view "$1" --size 120x40 </dev/null >"$work/once" || true
	grep -qE -- "$2" "$work/once" || { cat "$work/once" && die "one look at $1 does not show $2"; }
}
has topics 'orders +1 +3 '
has segments 'orders/r1 +ACTIVE'
has logs 'INFO'
"$top" -s "$seeds" -o jsonl -n 1000 </dev/null 2>/dev/null | head -n 1 | grep -q '"schema":"top/1"' || die "the first of many looks is no line"

# What is seen is recorded, too. The shell around it shows the exit code and the terminal's settings.
terminal "bash --norc"
shown() { tmux -L "$session" capture-pane -p | grep -qE -- "$1"; }
waits() { until_true "$1" shown "$2" || { tmux -L "$session" capture-pane -p && die "not on the screen: $2"; }; }
press() { tmux -L "$session" send-keys "$@"; }
pid_of() { cat "$EASTGUARD_CLUSTER_DIR/n$1/pid"; }
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

# A broker that stands still is suspect, and nothing has happened to it when it goes on.
kill -STOP "$(pid_of 3)"
waits 20 'n3 +(◐|✖)'
kill -CONT "$(pid_of 3)"
waits 20 'n3 +● alive +1 '
waits 20 'live 3/3'

bash run_cluster.sh kill 2 >/dev/null
press 2
waits 20 'n2.*(S|suspect|SUSPECT)|(◐|✖).*n2|n2 (suspect|dead)'
press 1
waits 30 'n2 +✖ dead +1 .*stale'
waits 20 'live 2/3'
waits 20 '! n2 dead .*segments? sealed.*led by others'
"$top" -s "$seeds" --once </dev/null >"$work/once" && die "one look at a cluster with a dead node exits 0" || code=$?
((code == 10)) || { cat "$work/once" && die "one look at a cluster with a dead node: exit $code"; }
press 6
waits 20 'FAILURE'
press 8
waits 20 'LEADER|SEAL'

for size in '80 24' '200 60' '120 40'; do
	tmux -L "$session" resize-window -x "${size% *}" -y "${size#* }"
	waits 10 '8 ?Events\]'
done

# Most are gone: what is shown is a part. All are gone: it says so, why, and how old the rest is.
bash run_cluster.sh kill 1 >/dev/null
press 1
waits 10 'partial 1/3'
waits 10 'in +≥'
bash run_cluster.sh kill 3 >/dev/null
waits 10 'No broker reachable'
waits 10 'last error: .*(connection refused|connection reset|closed it)'
waits 10 'next try in|trying now'
waits 10 'the data below is [0-9]+s old'
waits 10 'Nodes \(stale\)'
bash run_cluster.sh start >/dev/null
press r
waits 30 'live 3/3'
waits 30 'n2 +● alive +2 '
press 8 /
tmux -L "$session" send-keys -l CLIENT
press Enter
waits 10 'reconnected after [0-9]+'
press q
ends 0
kill "$load" 2>/dev/null || true

# Suspended, the shell has its terminal; resumed, the screen is back.
begin
press C-z
waits 10 'Stopped'
type_line "stty -g | cmp - $work/before && echo as it was"
waits 10 '^as it was'
type_line fg
waits 20 'live 3/3'
press q
waits 10 'ended with'
rm -f "$work/after"

# From inside eg-cli, and back; an action shows its plan and is asked for by name.
eg create-topic scratch 1 >/dev/null
type_line "clear; $cli -s $seeds"
waits 10 'eastguard>'
type_line top
waits 20 'live 3/3'
press q
waits 10 '^eastguard>$'
type_line exit
begin --view topics --filter scratch --allow-actions
waits 10 'scratch +1 +1 '
press j x
waits 10 'Actions: topic scratch'
press d
waits 20 'Type scratch to confirm'
tmux -L "$session" send-keys -l scratch
press Enter
gone() { ! eg topic list | grep -q scratch; }
until_true 20 gone || { screen && die "the topic was not deleted"; }
press C-c
ends 0

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

# Who does not want to wait for brokers is told why they are gone.
begin --exit-on-disconnect
for node in 1 2 3; do kill -KILL "$(pid_of "$node")"; done
ends 3
shown 'error: .*UNREACHABLE' || die "the end says nothing"

# The incident, once more, from the recording.
"$top" --replay "$work/incident.jsonl" --once --view events --filter 'n2' --size 140x60 </dev/null >"$work/replayed" || true
grep -qE 'n2 .*(suspect|dead)' "$work/replayed" || { cat "$work/replayed" && die "the recording does not show the death of n2"; }
