#!/usr/bin/env bash
# A cluster of broker processes under kill -9, SIGSTOP, cuts of the network (each broker has a namespace of its own) and
# fdatasync that is slow or fails (strace), while clients write and read. Every acked record is there at the end, once and
# in order, or the exit code is not 0; every wait of a producer is listed with its cause.
#
#   bash scripts/chaos.sh                       five brokers, 60 s, at least a million records
#   bash scripts/chaos.sh -for 10m -seed 7      longer; the seed chooses faults and nodes
#   bash scripts/chaos.sh -more -for 3m         and topics altered, made and deleted, disks lost and damaged, two brokers stopped
#   bash scripts/chaos.sh -loopback             without root: no namespaces, no faults of the network
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
go build -o "$bin/" ./cmd/eastguard ./scripts/internal/chaos
mkdir -p .test_cluster

need() {
	command -v "$2" >/dev/null || { apt-get install -y -q "$1" || { apt-get update -q && apt-get install -y -q "$1"; }; } >/dev/null 2>&1 || true
	command -v "$2" >/dev/null
}
need strace strace || true
inside=(unshare --net --mount --kill-child --fork)
if [[ " $* " == *" -loopback "* ]]; then
	inside=()
elif [[ $(id -u) -ne 0 ]] || ! need iproute2 ip || ! need iptables iptables || ! "${inside[@]}" true; then
	printf '\n*** no root, no namespaces, no iproute2 or no iptables: there are no faults of the network in this run ***\n\n'
	inside=()
	set -- -loopback "$@"
fi
"${inside[@]}" "$bin/chaos" -eastguard "$bin/eastguard" -dir "$PWD/.test_cluster/chaos.$$" -least 1000000 "$@"
