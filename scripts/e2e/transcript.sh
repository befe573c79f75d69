#!/usr/bin/env bash
# The first three commands at the prompt in a terminal, and the same through a pipe.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
needs tmux

bash run_cluster.sh >/dev/null
seeds=127.0.0.1:$EASTGUARD_BASE_PORT
export HOME=$work XDG_STATE_HOME=$work/state XDG_CONFIG_HOME=$work/config
commands=('create-topic my_topic 3' 'publish my_topic user123 "Hello EastGuard!"' 'consume my_topic earliest 10')
answers=('created topic' 'acked by' 'caught up')

terminal "'$cli' -s $seeds"
until_true 20 on_screen 'eastguard>' || { screen && die "no prompt"; }
for i in 0 1 2; do
	type_line "${commands[i]}"
	until_true 20 on_screen "${answers[i]}" || { screen && die "no answer to: ${commands[i]}"; }
done
screen | masked | sed -n '/create-topic/,/caught up/p' | same prompt.txt

"$cli" -s "$seeds" -y topic delete my_topic >/dev/null
printf '%s\n' "${commands[@]}" | "$cli" -s "$seeds" | masked | same pipe.txt
