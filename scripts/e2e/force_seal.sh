#!/usr/bin/env bash
# Records that are really lost: two of the three nodes that hold a segment never come back, and the copy of the third is
# damaged in its middle. The range waits; an operator sees what is known, accepts the loss, and everything goes on above
# the records that are left. The files of the segment say the same.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

export EASTGUARD_NODES=5 EASTGUARD_SHARDS=2 XDG_CONFIG_HOME=$work/config
bash run_cluster.sh >/dev/null
seeds=
for i in 0 1 2 3 4; do seeds+=${seeds:+,}127.0.0.1:$((EASTGUARD_BASE_PORT + 10 * i)); done
eg() { "$cli" -s "$seeds" "$@"; }
ask() { eg "$@" 2>/dev/null | tr -d '"' || true; }

# left counts the voters of a shard that are not among some nodes.
left() {
	local n=0 v
	for v in $(ask shard describe "$1" -o json --jq '.voters | join(" ")'); do [[ " $2 " == *" $v "* ]] || n=$((n + 1)); done
	echo "$n"
}

# choose finds a topic of which two holders can go without that a shard loses its majority, and says which of the three is
# left: the metadata is to outlive them.
choose() {
	local topic holders one lost
	for topic in t{1..16}; do
		holders=$(ask segment list --topic "$topic" -o json --jq '.[0].replicas | join(" ")')
		for one in $holders; do
			lost=${holders//$one/}
			(($(left 0 "$lost") >= 2 && $(left 1 "$lost") >= 2)) && echo "$topic $one $lost" && return
		done
	done
	return 1
}
for i in {1..16}; do eg create-topic "t$i" 3 >/dev/null; done
read -r topic survivor lost1 lost2 < <(choose) || die "no topic has such nodes"

for i in {1..20}; do echo "record-$i"; done | eg publish "$topic" >/dev/null || die "nothing is published"
# One batch a record, so that the damage is of one of them.
for i in {21..30}; do eg publish "$topic" key "record-$i" >/dev/null || die "nothing is published"; done
segment=$(ask segment list --topic "$topic" -o json --jq '.[0].id')
# At one moment: else those who are left end the segment.
pids=()
for n in "$lost1" "$lost2" "$survivor"; do pids+=("$(cat "$EASTGUARD_CLUSTER_DIR/$n/pid")"); done
kill -9 "${pids[@]}"

log=$(grep -la record-25 "$EASTGUARD_CLUSTER_DIR/$survivor"/data/wal/*.wal) || die "the records are not in the log of $survivor"
at=$(grep -abo record-25 "$log" | head -n 1 | cut -d : -f 1)
printf X | dd of="$log" bs=1 seek="$at" conv=notrunc status=none
bash run_cluster.sh start "${survivor#n}" >/dev/null

waits() { [[ $(ask segment list --topic "$topic" -o json --jq '.[0].waits') == *"1 damaged"* ]]; }
until_true 60 waits || { eg segment describe "$segment" && die "it is not said that the range waits"; }
plan=$(eg segment force-seal "$segment" --dry-run) || die "there is no plan: $plan"
for words in "would end $segment of $topic/r1 at 24" "unknown: whether the copy on $lost1 is whole" "damaged: the copy on $survivor; what it had from 24 on goes" "may be lost"; do
	[[ $plan == *"$words"* ]] || die "the plan does not say \"$words\": $plan"
done
if eg segment force-seal "$segment" -y >/dev/null 2>&1; then die "a loss was not to be accepted with -y alone"; fi
eg segment force-seal "$segment" -y --accept-data-loss --reason "burnt down" >/dev/null || die "the segment cannot be ended"

# What is left is read, and what is new follows it.
publishes() { eg publish "$topic" key "after" --timeout 5s >/dev/null 2>&1; }
until_true 60 publishes || die "nothing is published after the loss"
eg consume "$topic" earliest 100 -F '%v\n' >"$work/read" 2>/dev/null || die "the topic cannot be read to its end"
diff <(for i in {1..24}; do echo "record-$i"; done && echo after) <(head -n 25 "$work/read") || die "that is not what was left"
# Both answer in part: two nodes cannot be asked.
[[ $(ask events --since 10m --type SEGMENT_SEALED --topic "$topic") == *"forced: burnt down"* ]] || die "no event tells of the loss"
[[ $(ask segment describe "$segment") == *"without knowing its end: burnt down"* ]] || die "the loss is not recorded"

# The nodes come back after all: what they had above the end stays out.
for n in "$lost1" "$lost2"; do bash run_cluster.sh start "${n#n}" >/dev/null 2>&1 || true; done
copies() { [[ $(ask segment describe "$segment" -o json --jq '[.copy_list[] | select(.state == "in_sync" and .durable_end == 24)] | length') == 2 ]]; }
until_true 60 copies || { eg segment describe "$segment" && die "the copies that came back do not end with the segment"; }
until_true 60 publishes || die "nothing is published with all nodes back"
eg consume "$topic" earliest 100 -F '%v\n' 2>/dev/null | grep -qx 'record-2[6-9]' && die "a record that was given up is back"

# The files of a node that stopped say the same, and a byte that has changed is found.
bash run_cluster.sh stop "${lost1#n}" >/dev/null
file=$(find "$EASTGUARD_CLUSTER_DIR/$lost1/data/topics" -name "${segment#s}-0.log")
[[ -n $file ]] || die "the files of $segment are not there"
eg segment dump "$file" | grep -qx 'nothing is damaged' || { eg segment dump "$file" && die "a whole file is not called so"; }
[[ $(ask segment dump "$file" --records -o json --jq '.record_list[23].value') == record-24 ]] || die "the dump does not show the records"
cp -r "$(dirname "$file")" "$work/damaged"
copy=$work/damaged/$(basename "$file")
at=$(grep -abo record-22 "$copy" | head -n 1 | cut -d : -f 1)
printf X | dd of="$copy" bs=1 seek="$at" conv=notrunc status=none
status=0
eg segment dump "$copy" >"$work/dump" 2>/dev/null || status=$?
((status == 9)) && grep -q '^damaged: .*offset 21' "$work/dump" || { cat "$work/dump" && die "damage is not found (exit code $status)"; }
