#!/usr/bin/env bash
# A disk whose fdatasync fails: the broker ends with exit code 74, acknowledges nothing after it, and the next
# start has every record that was acknowledged before.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
needs strace

EASTGUARD_NODES=1 bash run_cluster.sh >/dev/null
seeds=127.0.0.1:$EASTGUARD_BASE_PORT
pid=$(cat "$EASTGUARD_CLUSTER_DIR/n1/pid")
"$cli" -s "$seeds" create-topic t 1 >/dev/null

strace -f -q -p "$pid" -e trace=fdatasync,fsync -e inject=fdatasync,fsync:error=EIO:when=20+ -o "$work/trace" &
tracer=$!
traced() { [[ $(awk '/^TracerPid/{print $2}' "/proc/$pid/status") != 0 ]]; }
until_true 10 traced || skip "strace cannot attach here (ptrace is not permitted)"

acked=0
for i in $(seq 1 100); do
	"$cli" -s "$seeds" --timeout 5s publish t k "record $i" >/dev/null 2>&1 || break
	acked=$i
done
wait "$tracer" || true
((acked < 100)) || die "100 records were acknowledged by a broker whose disk fails"
gone() { ! kill -0 "$pid" 2>/dev/null; }
until_true 10 gone || die "the broker goes on after a failed fdatasync"
tail -n 1 "$EASTGUARD_CLUSTER_DIR/n1/log" | grep -q '^eastguard: stable storage failed: .*; hint: ' || {
	tail -n 3 "$EASTGUARD_CLUSTER_DIR/n1/log"
	die "the broker's last line does not say what happened"
}
grep -q '+++ exited with 74 +++' "$work/trace" || die "the exit code is not 74: $(tail -n 2 "$work/trace")"

bash run_cluster.sh start >/dev/null
"$cli" -s "$seeds" consume t earliest 1000 -o jsonl >"$work/read"
for i in $(seq 1 "$acked"); do
	grep -q "\"record $i\"" "$work/read" || die "record $i of $acked acknowledged ones is gone"
done
