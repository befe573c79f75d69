#!/usr/bin/env bash
# Three copies: a node is killed while somebody publishes, who notices nothing; it comes back, and every active segment
# has three copies again. Operators see which segments ended, and why.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

seeds=127.0.0.1:$EASTGUARD_BASE_PORT,127.0.0.1:$((EASTGUARD_BASE_PORT + 10)),127.0.0.1:$((EASTGUARD_BASE_PORT + 20))
export XDG_CONFIG_HOME=$work/config
eg() { "$cli" -s "$seeds" "$@"; }

bash run_cluster.sh >/dev/null
eg create-topic orders 3 --ranges 4 >/dev/null

# Somebody publishes one record after the other until told to stop, and notes what went wrong.
publish() {
	local i
	for ((i = 0; ; i++)); do
		[[ ! -e $work/stop ]] || return 0
		eg publish orders "key$i" "value$i" >>"$work/acked" 2>>"$work/failed" || echo "record $i failed" >>"$work/failed"
	done
}
touch "$work/acked"
publish &
publisher=$!

published() { [[ $(wc -l <"$work/acked") -ge $1 ]]; }
until_true 20 published 20 || die "nothing is published"
bash run_cluster.sh kill 2 >/dev/null
until_true 30 published $(($(wc -l <"$work/acked") + 60)) || die "publishing does not go on without n2"
bash run_cluster.sh start 2 >/dev/null

# With the node settled, what is written to is written to three replicas again.
complete() {
	[[ $(eg segment list --topic orders --state active -o json --jq '[.[] | select((.replicas | length) == 3)] | length' 2>/dev/null) == 4 ]]
}
until_true 90 complete || { eg segment list --topic orders && die "the active segments do not get their third replica back"; }
touch "$work/stop"
wait "$publisher"

[[ ! -s $work/failed ]] || { head "$work/failed" && die "publishing failed"; }
want=$(wc -l <"$work/acked")
got=$(eg consume orders earliest 100000 -F '%k\n' 2>/dev/null | sort -u | wc -l)
((got == want)) || die "$want records were acked, $got are read"
eg segment list --topic orders --state sealed -o json --jq '.[].cause' | grep -q FAILURE || die "no segment says that a replica failed"
eg events --since 10m --type SEGMENT_SEALED --topic orders | grep -q FAILURE || die "no event tells of a seal"
