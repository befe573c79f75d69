#!/usr/bin/env bash
# The demo, as a new user sees it in a terminal.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
needs tmux

terminal "bash run_cluster.sh demo; echo \"exit code \$?\""
until_true 120 on_screen "exit code" || { screen && die "the demo did not end"; }
screen | grep -v '^Pane is dead' | masked | same demo.txt

# What it leaves behind runs, stops, and comes back with its data.
bash run_cluster.sh status | grep -q '^n1  running' || die "the cluster does not run after the demo"
bash run_cluster.sh stop
if bash run_cluster.sh status >/dev/null; then die "status of a stopped cluster must fail"; fi
bash run_cluster.sh start >/dev/null
"$cli" -s "127.0.0.1:$EASTGUARD_BASE_PORT" consume my_topic earliest 10 | grep -q 'Hello EastGuard!' || die "the record is gone after stop and start"
bash run_cluster.sh >/dev/null
"$cli" -s "127.0.0.1:$EASTGUARD_BASE_PORT" topic list -o name | grep -q my_topic && die "a bare start must begin with empty data"
exit 0
