#!/usr/bin/env bash
# A cluster of three nodes on this machine, for trying EastGuard out. Everything it makes lies under .test_cluster.
#
#   bash run_cluster.sh            build, start with empty data (what was there is removed), wait until it is healthy
#   bash run_cluster.sh demo       the same, and play the first three commands
#   bash run_cluster.sh start      start every node that does not run, with the data of the last run
#   bash run_cluster.sh start N    start node N only
#   bash run_cluster.sh add        one more node: it joins, and takes its share
#   bash run_cluster.sh kill N     kill -9 node N, to see what the others do
#   bash run_cluster.sh status     which processes run, and what the cluster says of itself
#   bash run_cluster.sh stop [N]   graceful stop, of all or of node N; the data stays
#   bash run_cluster.sh clean      stop and delete .test_cluster
#
# EASTGUARD_CLUSTER_DIR and EASTGUARD_BASE_PORT move it elsewhere, so that several can run side by side;
# EASTGUARD_NODES is how many nodes a clean start founds the cluster with.
set -euo pipefail

# Node i listens on base + 10·(i-1) + 0 (clients), 1 (cluster), 2 (data) and 3 (admin): 2921-2924, 2931-2934, …
start_timeout=30 # seconds until healthy
stop_timeout=20  # seconds until a node that does not stop is killed

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${EASTGUARD_CLUSTER_DIR:-$root/.test_cluster}
base_port=${EASTGUARD_BASE_PORT:-2921}
bin=$dir/bin

say() { printf '%s\n' "$*"; }
fail() {
	printf 'run_cluster.sh: %s\n' "$*" >&2
	exit 1
}

port() { echo $((base_port + 10 * ($1 - 1) + $2)); }
node_dir() { echo "$dir/n$1"; }

# founders is how many nodes the cluster was founded with; all counts those that were added, too.
founders() { cat "$dir/founders" 2>/dev/null || echo "${EASTGUARD_NODES:-3}"; }
all() {
	local i
	i=$(founders)
	while [[ -e $(node_dir $((i + 1))) ]]; do i=$((i + 1)); done
	echo "$i"
}

# addresses WHICH N [NOT] lists a port of the nodes 1 to N by commas: the client ports are WHICH 0, the cluster ports 1.
addresses() {
	local i list=
	for ((i = 1; i <= $2; i++)); do
		((i == ${3:-0})) || list+=${list:+,}127.0.0.1:$(port "$i" "$1")
	done
	echo "$list"
}
seeds() { addresses 0 "$(all)"; }

# The caller's own eg-cli settings must not reach in: the demo shows what a new user sees.
cli() { env -u EG_CONTEXT -u EG_OUTPUT EG_CLI_CONFIG=/dev/null EG_SEEDS="$(seeds)" "$bin/eg-cli" "$@"; }

build() {
	command -v go >/dev/null || fail "Go is needed to build EastGuard; install it from https://go.dev/dl and try again"
	say "building"
	mkdir -p "$bin"
	(cd "$root" && go build -o "$bin/" ./cmd/eastguard ./cmd/eg-cli ./cmd/eg-top)
}

# running_pid prints the process id of node $1 if that process is alive and is ours: a pid file may be left over
# from before a reboot, and its number may belong to anyone now.
running_pid() {
	local pid
	pid=$(cat "$(node_dir "$1")/pid" 2>/dev/null) || return 1
	[[ $pid =~ ^[0-9]+$ ]] || return 1
	ps -ww -p "$pid" -o args= 2>/dev/null | grep -qF -- "--data-dir $(node_dir "$1")/data " || return 1
	echo "$pid"
}

# listens says whether process $1 itself has TCP port $2 open. A health check cannot tell: where the port was taken,
# it is a stranger's broker that answers.
listens() {
	local inode
	for inode in $(awk -v port=":$(printf '%04X' "$2")\$" '$4 == "0A" && $2 ~ port { print $10 }' /proc/net/tcp /proc/net/tcp6 2>/dev/null); do
		find "/proc/$1/fd" -lname "socket:\\[$inode\\]" 2>/dev/null | grep -q . && return
	done
	return 1
}

# must_run fails, with the reason from its log, if node $1 has ended.
must_run() {
	running_pid "$1" >/dev/null && return
	tail -n 5 "$(node_dir "$1")/log" >&2
	if tail -n 1 "$(node_dir "$1")/log" | grep -q "port .* in use"; then
		say "Where another cluster has the ports, choose others: EASTGUARD_BASE_PORT=3921 bash run_cluster.sh ..." >&2
	fi
	fail "node n$1 has stopped; its log is $(node_dir "$1")/log"
}

start_node() {
	local i=$1 n d join=()
	d=$(node_dir "$i")
	mkdir -p "$d"
	n=$(founders)
	[[ -e $dir/founders ]] || echo "$n" >"$dir/founders"
	# Who founds knows the other founders, and how many they are; who is added knows whom to ask. A single node founds
	# by itself.
	if ((n > 1 || i > n)); then join=(--join-seed-nodes "$(addresses 1 "$n" "$i")"); fi
	if ((n > 1 && i <= n)); then join+=(--bootstrap-expect "$n"); fi
	# The node's own folder is its working directory, so that no ./eastguard.yaml is read by accident; a session of
	# its own keeps this terminal's Ctrl-C and hang-up away from it.
	(
		cd "$d"
		exec setsid "$bin/eastguard" \
			--node-id "n$i" --host 127.0.0.1 --admin-host 127.0.0.1 \
			--client-port "$(port "$i" 0)" --cluster-port "$(port "$i" 1)" \
			--data-port "$(port "$i" 2)" --admin-port "$(port "$i" 3)" \
			--data-dir "$d/data" --meta-dir "$d/meta" \
			"${join[@]}" </dev/null >>"$d/log" 2>&1
	) &
	echo $! >"$d/pid"
}

# ready asks node $1 itself whether it serves.
ready() {
	local answer
	exec 3<>"/dev/tcp/127.0.0.1/$(port "$1" 3)" || return 1
	printf 'GET /readyz HTTP/1.0\r\n\r\n' >&3
	read -r -t 2 answer <&3 || true
	exec 3>&-
	[[ $answer == *" 200 "* ]]
} 2>/dev/null

# await NODES… waits until the cluster is healthy; while somebody else is down, which it is not then, until these nodes
# serve.
await() {
	local i n deadline=$((SECONDS + start_timeout))
	n=$(all)
	for ((i = 1; i <= n; i++)); do
		running_pid "$i" >/dev/null && continue
		for i in "$@"; do
			until ready "$i"; do
				((SECONDS < deadline)) || return 1
				sleep 0.1
			done
		done
		return
	done
	cli cluster health --wait --min-nodes "$n" --timeout "${start_timeout}s"
}

# start NODES… brings up those that do not run and waits until the cluster says that it is healthy (see await), or until
# a node has died.
start() {
	local i pid started=()
	build
	say "starting $(names "$@")"
	for i in "$@"; do
		if running_pid "$i" >/dev/null; then
			say "  n$i runs already"
		else
			start_node "$i"
			started+=($!)
		fi
	done
	await "$@" >"$dir/health" 2>&1 &
	local health=$! status=0
	# wait -n returns when the first of them ends: the health check with its answer, or a node with its failure.
	wait -n "$health" "${started[@]}" || status=$?
	for i in "$@"; do
		running_pid "$i" >/dev/null || kill "$health" 2>/dev/null || true
		must_run "$i"
	done
	if ((status != 0)); then
		cat "$dir/health" >&2
		fail "not healthy within $start_timeout s; the logs are in $dir/n*/log"
	fi
	for i in "$@"; do
		until pid=$(running_pid "$i") && listens "$pid" "$(port "$i" 0)"; do
			must_run "$i"
			sleep 0.05
		done
	done
	disown -a
	say "$(state): clients connect to $(seeds)"
}

# state is what start has waited for.
state() {
	local i
	for ((i = 1; i <= $(all); i++)); do
		running_pid "$i" >/dev/null || { say serving && return; }
	done
	say healthy
}

names() {
	local i list=
	for i in "$@"; do list+=${list:+ }n$i; done
	echo "$list"
}

start_all() {
	local i list=()
	for ((i = 1; i <= $(all); i++)); do list+=("$i"); done
	start "${list[@]}"
}

# known fails unless $1 is the number of a node.
known() {
	[[ ${1:-} =~ ^[0-9]+$ ]] && (($1 >= 1 && $1 <= $(all))) || fail "which node? give its number, 1 to $(all)"
}

add() {
	local i
	running_pid 1 >/dev/null || [[ -e $dir/founders ]] || fail "there is no cluster to add a node to: bash run_cluster.sh"
	i=$(($(all) + 1))
	start "$i"
}

kill_node() {
	local pid
	known "${1:-}"
	pid=$(running_pid "$1") || fail "n$1 does not run"
	kill -KILL "$pid"
	stop_wait "$1"
	say "killed n$1; bring it back: bash run_cluster.sh start $1"
}

stop() {
	local i pid n stopped=
	n=$(all)
	for i in "${@:-}"; do
		[[ -z $i ]] || known "$i"
	done
	(($# > 0)) || for ((i = 1; i <= n; i++)); do set -- "$@" "$i"; done
	for i in "$@"; do
		pid=$(running_pid "$i") || continue
		kill -TERM "$pid"
		stopped+=" n$i"
	done
	for i in "$@"; do stop_wait "$i"; done
	if [[ ! -e $dir/n1 ]]; then
		say "nothing runs, and there is no data in $(relative "$dir")"
	elif [[ -n $stopped ]]; then
		say "stopped$stopped; the data stays in $(relative "$dir")"
	else
		say "nothing runs; the data stays in $(relative "$dir")"
	fi
}

# stop_wait waits for node $1 to end, with a deadline.
stop_wait() {
	local pid deadline=$((SECONDS + stop_timeout))
	while pid=$(running_pid "$1"); do
		if ((SECONDS >= deadline)); then
			say "n$1 (pid $pid) did not stop within $stop_timeout s: killing it" >&2
			kill -KILL "$pid"
			deadline=$((SECONDS + stop_timeout))
		fi
		sleep 0.05
	done
	rm -f "$(node_dir "$1")/pid"
}

clean() {
	local was=
	[[ -e $dir/n1 ]] && was=yes
	stop >/dev/null
	# Only what this script made: a mistyped EASTGUARD_CLUSTER_DIR must not cost anyone a home directory.
	rm -rf "$bin" "$dir"/n[0-9]* "$dir/health" "$dir/founders"
	rmdir "$dir" 2>/dev/null || true
	if [[ -n $was ]]; then
		say "removed the nodes and data of the last run in $(relative "$dir")"
	elif [[ ${1:-} != quiet ]]; then
		say "nothing to remove in $(relative "$dir")"
	fi
}

status() {
	local i pid state=0 some=
	for ((i = 1; i <= $(all); i++)); do
		if pid=$(running_pid "$i"); then
			say "n$i  running  pid $pid  127.0.0.1:$(port "$i" 0)"
			some=yes
		else
			say "n$i  stopped"
			state=3
		fi
	done
	if [[ -n $some ]]; then
		say ""
		cli cluster status || ((state)) || state=$?
	fi
	return "$state"
}

# play shows a command as one would type it, and what it prints.
play() {
	local shown="eg-cli" word
	for word in "$@"; do
		[[ $word == *[![:alnum:]_.-]* ]] && word="\"$word\""
		shown+=" $word"
	done
	printf '\n$ %s\n' "$shown"
	cli "$@"
}

demo() {
	clean quiet
	start_all
	play create-topic my_topic 3
	play publish my_topic user123 "Hello EastGuard!"
	play consume my_topic earliest 10
	say ""
	# All of them, so that it answers whichever node is killed next.
	say "The cluster goes on running. Talk to it:"
	say "  $(relative "$bin/eg-cli") -s $(seeds)"
	say "Stop it: bash run_cluster.sh stop"
}

relative() { echo "${1#"$PWD"/}"; }

verb=${1:-fresh}
(($# == 0)) || shift
case $verb in
start | stop | kill) (($# <= 1)) || fail "one node at a time, not \"$*\"" ;;
*) (($# == 0)) || fail "$verb takes nothing more, not \"$*\"" ;;
esac
case $verb in
fresh) clean quiet && start_all ;;
start)
	if (($#)); then known "$1" && start "$1"; else start_all; fi
	;;
add) add ;;
kill) kill_node "$@" ;;
demo) demo ;;
status) status ;;
stop) stop "$@" ;;
clean) clean ;;
-h | --help | help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" ;;
*) fail "unknown command \"$verb\": use start, add, kill, demo, status, stop or clean, or nothing for a clean start" ;;
esac
