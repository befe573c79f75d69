#!/usr/bin/env bash
# A disk that fills up: new records are refused with DISK_FULL, reads and metadata go on, a delete frees the disk,
# and records are taken again. The broker runs through it all.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
[[ $(id -u) -eq 0 ]] || skip "mounting a small file system needs root"

mkdir -p "$EASTGUARD_CLUSTER_DIR"
mount -t tmpfs -o size=512m eastguard-e2e "$EASTGUARD_CLUSTER_DIR" 2>/dev/null || skip "cannot mount a tmpfs here"
at_end() { umount "$EASTGUARD_CLUSTER_DIR" || true; }

export EASTGUARD_RESERVE_BYTES=32MiB EASTGUARD_SEGMENT_SIZE_LIMIT_BYTES=16MiB EASTGUARD_CACHE_BUDGET_BYTES=16MiB
EASTGUARD_NODES=1 bash run_cluster.sh >/dev/null
seeds=127.0.0.1:$EASTGUARD_BASE_PORT
pid=$(cat "$EASTGUARD_CLUSTER_DIR/n1/pid")
eg() { "$cli" -s "$seeds" "$@"; }

eg create-topic full 1 >/dev/null
eg publish full k "the first record" >/dev/null

# Twice what fits, a line of 64 KiB a record.
status=0
head -c 700M /dev/urandom | base64 -w 65536 | eg --timeout 60s publish full >/dev/null 2>"$work/publish" || status=$?
((status != 0)) || die "700 MB were taken by a file system of 512 MiB"
grep -q 'DISK_FULL' "$work/publish" || { tail -n 5 "$work/publish" && die "publish failed for another reason than a full disk"; }

kill -0 "$pid" || die "the broker has ended on a full disk: $(tail -n 1 "$EASTGUARD_CLUSTER_DIR/n1/log")"
first=$(eg consume full earliest 1 -o jsonl 2>/dev/null)
[[ $first == *"the first record"* ]] || die "the first record cannot be read from a full disk: $first"
eg topic describe full >/dev/null || die "metadata cannot be read on a full disk"
eg -y topic delete full >/dev/null || die "a topic cannot be deleted on a full disk"

takes_records() { eg --timeout 5s publish next k v >/dev/null 2>&1; }
eg create-topic next 1 >/dev/null || die "no topic can be created after space was freed"
until_true 20 takes_records || { eg publish next k v || true; df -h "$EASTGUARD_CLUSTER_DIR"; die "no record is taken after space was freed"; }
