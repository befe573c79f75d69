package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/eastguard/eastguard/internal/base"
)

// helpTopics are the pages of help that are not about one command. Those that repeat a table are made from it.
var helpTopics = map[string]func() string{
	"environment": helpEnvironment,
	"formatting":  func() string { return helpFormatting },
	"exit-codes":  func() string { return helpExitCodes },
	"errors":      helpErrors,
	"repl":        func() string { return helpREPL },
	"keys":        func() string { return helpKeys },
}

// helpFlags is the page of the flags that every command takes; it is made from the tree of commands.
const helpFlags = "flags"

func helpTopicNames() []string {
	names := append(slices.Collect(maps.Keys(helpTopics)), helpFlags)
	slices.Sort(names)
	return names
}

func helpEnvironment() string {
	var b strings.Builder
	b.WriteString("Settings come from, highest first: flag, prompt (:set), environment, context, file, built-in.\n" +
		"eg-cli config sources shows each value and where it came from.\n\n")
	for _, g := range globalSettings {
		names := []string{}
		if g.flag != "" {
			names = append(names, "--"+g.flag)
		}
		names = append(names, g.env...)
		fmt.Fprintf(&b, "  %-10s %-38s %s\n", g.key, strings.Join(names, ", "), g.help)
	}
	b.WriteString(`
  EG_CLI_CONFIG      configuration file (else $XDG_CONFIG_HOME/eastguard/cli.yaml)
  EG_CONTEXT         named context of that file
  NO_COLOR           present and not empty: no colour
  CLICOLOR=0         no colour; CLICOLOR_FORCE=1 colour even into a pipe
  TERM=dumb          no colour, no prompt editing
  LC_ALL LC_CTYPE LANG   a locale that is not UTF-8: only ASCII glyphs
  XDG_STATE_HOME     where the prompt keeps its history (else ~/.local/state)

The file:

  current: local
  contexts:
    - name: local
      seeds: [127.0.0.1:2921]
    - name: prod-eu
      seeds: [10.0.0.11:2921, 10.0.0.12:2921]
      color: red
      protected: true
  defaults: {output: table, time: local}
  repl: {hints: true, timing_over: 500ms, vi: false}
`)
	return b.String()
}

const helpFormatting = `-o FORMAT
  table   for people (default); wide adds columns. On a terminal too narrow
          for all, some are left out, and an ellipsis ends the headings
  json    a list is an array, a describe an object, a stream one object a line
  jsonl   one object a line
  yaml    the same as json; streams are documents
  csv     RFC 4180 with a header and raw numbers; null is an empty field, empty text ""
  tsv     the same with tabs; null is \N
  name    the names or ids alone, one a line
  dot     a drawing for Graphviz; node ring only

  --columns a,b --no-headers --sort-by column[:desc] --limit N shape tables, csv and tsv.
  --jq EXPRESSION filters the JSON form; strings print as they are.
  --template T prints the JSON form with a Go template; functions: json upper lower join bytes date.
  Fields are snake_case with units: _bytes _ms _us _per_sec. Times are RFC 3339 in UTC with milliseconds.
  eg-cli schema NAME prints the JSON Schema of a command's documents.

consume -F FORMAT
  %t topic  %r range  %o offset  %d time  %k key  %v value  %h headers  %s size of the value  %% percent
  %d{ms} %d{utc}   %k{hex} %k{b64} %k{json}   %v{hex} %v{b64} %v{json}   \n \t \xHH
  or a Go template over .Topic .Range .Offset .Time .Key .Value .Headers .Epoch .LagMs
  with hex b64 json strftime pad trunc: '{{.Offset}} {{strftime "%H:%M" .Time}} {{.Key | pad 12}} {{.Value}}'
  A newline is added unless the format ends in one.

publish --in FORMAT
  %k key  %v value  %d time (RFC 3339 or milliseconds)  %- skip, with text between them: '%k:%v'

publish -n N
  {{.Count}} {{.Time}} {{.Random 10 100}} {{.Int 1000}} in key and value
`

const helpExitCodes = `  0  OK               done
  1  ERROR            unexpected failure
  2  USAGE            bad flag, argument or quote; refusal to act without --yes
  3  UNREACHABLE      no broker answered
  4  NOT_FOUND        topic, range, segment, node, shard, context
  5  CONFLICT         exists, precondition failed, not enough nodes
  6  DENIED           not permitted, or read-only
  7  UNKNOWN_OUTCOME  the deadline passed after the request was sent; it may have been applied
  8  PARTIAL          some items failed; see the result of each
  9  INTEGRITY        checksum mismatch, offset gap, lost or reordered records
 10  UNHEALTHY        the question was answered, and the answer is "not healthy"
 11  WARN             only with --warn-exit
 12  NOT_MET          wait, --wait, --expect, --verify, bench --max-p99, --detailed-exitcode …
130  INTERRUPTED      SIGINT; what was printed is valid
143  TERMINATED       SIGTERM; what was printed is valid

cluster health --nagios uses 0, 1, 2 and 3 as Nagios does.
`

func helpErrors() string {
	var b strings.Builder
	b.WriteString("An error says what, and what to do next:\n\n" +
		"  error: topic \"t\" does not exist [TOPIC_NOT_FOUND]\n  hint: did you mean \"t1\"?\n\n" +
		"With -o json it is one line on stderr: {\"error\":{\"code\",\"exit\",\"message\",\"hint\",\"retryable\",\"outcome\",…}}.\n" +
		"outcome is not_applied, applied or unknown: whether the request took effect.\n\n" +
		"Codes (eg-cli explain CODE has a page on each):\n\n")
	all := explainable()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if _, check := healthChecks[name]; !check && name != base.CodeOK.String() {
			fmt.Fprintf(&b, "  %-3d %-22s %s\n", all[name].Exit, name, all[name].Summary)
		}
	}
	return b.String()
}

const helpREPL = `eg-cli without arguments is a prompt, when stdin is a terminal. Each line is a command, without "eg-cli".

  5 publish t k v              repeat
  topic list > topics.txt      the output goes to a file; >> appends
  a; b                         two commands
  'raw'  "with \n \t \x41"     quotes; an open one asks for more on the next line
  # text                       comment, at the start of a line
  ?                            help

  :set output json   :set hints off   :set timing on   :set vi on
  :use CONTEXT       :connect HOST:PORT
  :watch 2 topic list
  :source FILE       :history [N]     :clear     :quit

History lies in $XDG_STATE_HOME/eastguard/history (mode 0600). A line that begins with a space is not kept.
The file clirc beside the configuration is run at the start. The prompt says (offline) while no broker answers.

A batch is the same without the prompt: eg-cli -e 'a; b', eg-cli run FILE, or lines on stdin. It stops at the first
error with that error's exit code; --keep-going goes on and exits 8.
`

const helpKeys = `  TAB            complete commands, flags, values, topics; again to walk through them
  Ctrl-C         cancel the command, or the line; twice on an empty line to leave
  Ctrl-D         leave, on an empty line
  Up Down        history          Ctrl-R  search it
  Ctrl-A Ctrl-E  start, end       Ctrl-W  delete a word
  Ctrl-U Ctrl-K  delete to the start, to the end
  Ctrl-L         clear the screen
  Right, Ctrl-F  forward; the grey text is a hint and is not part of the line
`
