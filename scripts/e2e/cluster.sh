#!/usr/bin/env bash
# Three nodes: one is killed while an operator watches, the others go on; it comes back, a fourth joins, and all of
# them stop and start again.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
needs tmux

export XDG_STATE_HOME=$work/state XDG_CONFIG_HOME=$work/config
seeds=127.0.0.1:$EASTGUARD_BASE_PORT,127.0.0.1:$((EASTGUARD_BASE_PORT + 10)),127.0.0.1:$((EASTGUARD_BASE_PORT + 20))
eg() { "$cli" -s "$seeds" "$@"; }

bash run_cluster.sh >/dev/null
eg topic create orders --ranges 8 >/dev/null
for ((i = 0; i < 50; i++)); do echo "key$i:value$i"; done | eg publish orders -K : >/dev/null

# The screen of who watches.
terminal "'$cli' -s '$seeds' node list -w"
shown() { screen | grep -qE -- "$1"; }
until_true 20 shown 'AN +n1 ' && shown 'AN +n2 ' && shown 'AN +n3 ' || { screen && die "the three nodes are not shown alive"; }
bash run_cluster.sh kill 2 >/dev/null
until_true 20 shown 'DN +n2 ' || { screen && die "the death of n2 is not shown"; }

# Every shard is led by one of the other two, and topics can be made and changed.
led_without_n2() { [[ $(eg shard list -o json --jq '[.[].leader | select(. == "n1" or . == "n3")] | length' 2>/dev/null) == 32 ]]; }
until_true 20 led_without_n2 || { eg shard list && die "not every shard has a living leader"; }
for ((i = 0; i < 20; i++)); do eg topic create "while_down_$i" --rf 1 >/dev/null || die "a topic cannot be made while n2 is down"; done
eg -y topic alter while_down_0 retention=3d >/dev/null

bash run_cluster.sh start 2 >/dev/null
until_true 30 shown 'AN +n2 ' || { screen && die "the return of n2 is not shown"; }
bash run_cluster.sh add >/dev/null
until_true 20 shown 'AN +n4 ' || { screen && die "n4 is not shown"; }
eg wait node n4 admitted --timeout 20s >/dev/null

eg topic list -o name >"$work/before"
bash run_cluster.sh stop >/dev/null
bash run_cluster.sh start >/dev/null
eg topic list -o name | diff "$work/before" - || die "the topics are not the same after stop and start"
count=$(eg consume orders earliest 1000 -F '%k\n' 2>/dev/null | sort -u | wc -l)
((count == 50)) || die "$count of 50 records are there"
