#!/usr/bin/env bash
# Makes docs/pictures anew: a cluster of three nodes under load, of which one is killed while eg-top records; the pictures
# are frames of that recording.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
export EASTGUARD_CLUSTER_DIR=$work/cluster EASTGUARD_BASE_PORT=${EASTGUARD_BASE_PORT:-25500}
bin=$EASTGUARD_CLUSTER_DIR/bin
seeds=127.0.0.1:$EASTGUARD_BASE_PORT,127.0.0.1:$((EASTGUARD_BASE_PORT + 10)),127.0.0.1:$((EASTGUARD_BASE_PORT + 20))
load=()
cleanup() {
	((${#load[@]} == 0)) || kill "${load[@]}" 2>/dev/null || true
	bash run_cluster.sh clean >/dev/null 2>&1 || true
	rm -rf "$work"
}
trap cleanup EXIT

bash run_cluster.sh >/dev/null
go build -o "$bin/" ./cmd/eg-top ./scripts/internal/frames
export EG_CLI_CONFIG=/dev/null
"$bin/eg-cli" -s "$seeds" topic create orders --ranges 8 >/dev/null
"$bin/eg-cli" -s "$seeds" topic create clicks --ranges 4 >/dev/null
"$bin/eg-cli" -s "$seeds" topic create payments --ranges 2 >/dev/null
for load_of in orders:3000 clicks:1500 payments:500; do
	"$bin/eg-cli" -s "$seeds" bench produce "${load_of%:*}" --rate "${load_of#*:}" --duration 60s >/dev/null 2>&1 &
	load+=($!)
done

# record VIEW: eg-top asks for what its view shows, so a view's picture needs a recording of it; and it needs a terminal to
# show it on, which script(1) gives it.
recordings=()
record() {
	script -qefc "stty cols 120 rows 40; '$bin/eg-top' $1 -s '$seeds' --duration 50s --record '$work/$1.jsonl'" /dev/null >/dev/null </dev/null &
	recordings+=($!)
}
record overview
record segments
sleep 25 # so long all is well, for the pictures of that
bash run_cluster.sh kill 2 >/dev/null
wait "${recordings[@]}" || true

mkdir -p docs/pictures
"$bin/frames" --replay "$work/overview.jsonl" --out docs/pictures overview@31s ring@31s ranges@24s events@36s
"$bin/frames" --replay "$work/segments.jsonl" --out docs/pictures segments@36s
