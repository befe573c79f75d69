#!/usr/bin/env bash
# Measures brokers beside the disk's own speed, replication beside NATS JetStream, and what eg-top takes; writes the table
# of docs/PERFORMANCE.md.
#
#   bash scripts/bench.sh                     all, about fifteen minutes
#   bash scripts/bench.sh -only produce       one group: idle, latency, produce, consume, topics, recovery, cluster,
#                                             replication, failures (-trials 50), top
#   bash scripts/bench.sh -dir /mnt/x/bench   on another file system (the directory must not exist)
#
# Broker, client and floor share two cores. Run it on a quiet machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
go build -o "$bin/" ./cmd/eastguard ./cmd/eg-cli ./cmd/eg-top ./scripts/internal/bench
peer=()
if [[ " $* " != *" -only "* || " $* " == *" -only replication "* ]]; then # the peer is built outside of go.mod
	GOFLAGS=-mod=mod GOBIN="$bin" go install github.com/nats-io/nats-server/v2@v2.15.2
	GOFLAGS=-mod=mod GOBIN="$bin" go install github.com/nats-io/natscli/nats@v0.5.0
	peer=(-nats "$bin/nats" -nats-server "$bin/nats-server")
fi
commit=$(git describe --always --dirty=+changes 2>/dev/null || echo unknown)

cores=0-$(($(nproc) > 1 ? 1 : 0))
mkdir -p .test_cluster
taskset -c "$cores" "$bin/bench" -eastguard "$bin/eastguard" -eg-cli "$bin/eg-cli" -eg-top "$bin/eg-top" \
	-dir "$PWD/.test_cluster/bench.$$" -commit "$commit" -markdown docs/PERFORMANCE.md "${peer[@]}" "$@"
