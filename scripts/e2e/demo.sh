#!/usr/bin/env bash
# The demo, as a new user sees it in a terminal.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
needs tmux

terminal "bash run_cluster.sh demo; echo \"exit code \$?\""
until_true 120 on_screen "exit code" || { screen && die "the demo did not end"; }
screen | grep -v '^Pane is dead' | masked | same demo.txt

# What it leaves behind runs, stops, and comes back with its data.
seeds=127.0.0.1:$EASTGUARD_BASE_PORT,127.0.0.1:$((EASTGUARD_BASE_PORT + 10))
has() { grep -qF -- "$1" <<<"$2"; } # not at the end of a pipe: grep -q would close it on the writer
has "n1  running" "$(bash run_cluster.sh status)" || die "the cluster does not run after the demo"
has "stopped n1 n2 n3; the data stays in" "$(bash run_cluster.sh stop)" || die "stop does not say what it did"
has "nothing runs; the data stays in" "$(bash run_cluster.sh stop)" || die "a second stop does not say that nothing runs"
if bash run_cluster.sh status >/dev/null; then die "status of a stopped cluster must fail"; fi
bash run_cluster.sh start >/dev/null
has 'Hello EastGuard!' "$("$cli" -s "$seeds" consume my_topic earliest 10 2>/dev/null)" || die "the record is gone after stop and start"
has "removed the nodes and data of the last run in" "$(bash run_cluster.sh)" || die "a bare start does not say that it removes the former data"
if has my_topic "$("$cli" -s "$seeds" topic list -o name)"; then die "a bare start must begin with empty data"; fi

# Where the port is taken, also by a healthy broker, it says so and does not talk to the stranger.
if EASTGUARD_CLUSTER_DIR=$work/second bash run_cluster.sh demo >"$work/out" 2>&1; then die "a demo on a taken port must fail"; fi
has "port $EASTGUARD_BASE_PORT of 127.0.0.1 is in use" "$(cat "$work/out")" || die "the demo does not say that its port is taken"
if has my_topic "$("$cli" -s "$seeds" topic list -o name)"; then die "a demo on a taken port has used the other cluster"; fi
