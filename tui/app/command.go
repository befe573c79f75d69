package app

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/eastguard/eastguard/internal/term"
)

// Command is a line typed behind ":".
type Command struct {
	Verb string // one of verbs, never a short form
	Arg  string
}

// verb is a word that a line can begin with.
type verb struct {
	name  string
	short []string
	arg   argument
	help  string
}

// argument is what may stand behind a verb.
type argument uint8

const (
	argNone     argument = iota
	argText              // anything, or nothing
	argNode              // a node
	argTopic             // a topic
	argRange             // a topic, or /r9
	argGroup             // a group
	argShard             // a shard
	argType              // a type of event
	argTime              // a point in time
	argSeeds             // host:port,…
	argContexts          // a context of the configuration
	argRate              // a refresh rate
	argFilter            // a filter
	argLog               // a level, or a filter
)

// levels are those of a log, as :logs takes them: that and worse.
var levels = []string{"debug", "info", "warn", "error"}

// verbs are all commands, in the order of help.
var verbs = []verb{
	{"overview", []string{"o"}, argNone, "health, load, nodes, hottest topics"},
	{"ring", []string{"node", "nodes"}, argNode, "members, and what each believes of the others"},
	{"shards", []string{"shard"}, argShard, "metadata shards and their leaders"},
	{"topics", []string{"topic"}, argFilter, "topics"},
	{"ranges", []string{"range"}, argTopic, "the key space of a topic"},
	{"segments", []string{"segment"}, argRange, "segments and seals"},
	{"groups", []string{"group"}, argGroup, "consumer groups"},
	{"events", []string{"event"}, argType, "what has happened"},
	{"logs", []string{"log"}, argLog, "lines of the nodes' logs: of a level and worse, or that a filter lets pass"},
	{"at", nil, argTime, "look at an earlier moment: -5m, 12:04"},
	{"live", nil, argNone, "back to now"},
	{"filter", nil, argFilter, "narrow the table"},
	{"refresh", nil, argRate, "how often the screen changes: 250ms, 1s"},
	{"seeds", nil, argSeeds, "look for brokers at other addresses"},
	{"ctx", []string{"context"}, argContexts, "watch another cluster"},
	{"rw", nil, argNone, "allow actions"},
	{"ro", nil, argNone, "forbid actions"},
	{"ascii", nil, argNone, "glyphs of ASCII alone, or not"},
	{"save", nil, argNone, "write the screen and the data to files"},
	{"help", []string{"h"}, argNone, "keys of this view"},
	{"quit", []string{"q", "exit"}, argNone, "quit"},
}

// ParseCommand reads a line. A verb may be shortened as long as it is the only one that begins so.
func ParseCommand(line string) (Command, error) {
	if len(line) > maxPattern {
		return Command{}, invalid("a command has %d bytes at most", maxPattern)
	}
	word, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
	arg = strings.TrimSpace(arg)
	if word == "" {
		return Command{}, invalid("no command was given")
	}
	v, err := findVerb(strings.ToLower(word))
	if err != nil {
		return Command{}, err
	}
	if v.arg == argNone && arg != "" {
		return Command{}, invalid("%s takes nothing behind it", v.name)
	}
	return Command{Verb: v.name, Arg: arg}, v.check(arg)
}

func findVerb(word string) (verb, error) {
	var found []verb
	for _, v := range verbs {
		if v.name == word || slices.Contains(v.short, word) {
			return v, nil
		}
		if strings.HasPrefix(v.name, word) {
			found = append(found, v)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return verb{}, invalid("there is no command %q", term.Truncate(term.Escape(word), 20, false))
	}
	return verb{}, invalid("%q is short for %s and %s", word, found[0].name, found[1].name)
}

// check finds what is wrong with an argument before anything is done.
func (v verb) check(arg string) error {
	switch v.arg {
	case argTime:
		if _, err := momentOf(arg, time.Time{}.AddDate(2000, 0, 0)); err != nil {
			return err
		}
	case argRate:
		if _, err := term.ParseDuration(arg); err != nil {
			return invalid("refresh wants a span such as 500ms")
		}
	case argSeeds, argContexts:
		if arg == "" {
			return invalid("%s wants an argument", v.name)
		}
	case argFilter, argLog:
		_, err := ParseFilter(arg)
		return err
	}
	return nil
}

// momentOf reads the argument of :at.
func momentOf(arg string, now time.Time) (time.Time, error) {
	at, err := term.ParseTime(arg, now)
	if err != nil || arg == "" {
		return time.Time{}, invalid("at wants a moment such as -5m or 12:04")
	}
	return at, nil
}

// names are what completion knows of the cluster.
type names struct {
	Nodes, Topics, Groups, Shards, Types, Contexts []string
}

func (n names) of(a argument) []string {
	switch a {
	case argNode:
		return n.Nodes
	case argTopic, argRange:
		return n.Topics
	case argGroup:
		return n.Groups
	case argShard:
		return n.Shards
	case argType:
		return n.Types
	case argContexts:
		return n.Contexts
	case argLog:
		return levels
	case argNone, argText, argTime, argSeeds, argRate, argFilter:
	}
	return nil
}

// maxCandidates bounds what TAB offers.
const maxCandidates = 50

// complete is what TAB makes of a line: the line as far as it is certain, and what could follow.
func complete(line string, known names) (longer string, candidates []string) {
	word, arg, hasArg := strings.Cut(strings.TrimLeft(line, " "), " ")
	if !hasArg {
		for _, v := range verbs {
			if strings.HasPrefix(v.name, strings.ToLower(word)) {
				candidates = append(candidates, v.name)
			}
		}
		return extend(line, "", word, candidates)
	}
	v, err := findVerb(strings.ToLower(word))
	if err != nil {
		return line, nil
	}
	for _, name := range known.of(v.arg) {
		if strings.HasPrefix(name, arg) && len(candidates) < maxCandidates {
			candidates = append(candidates, name)
		}
	}
	return extend(line, word+" ", arg, candidates)
}

// extend replaces the last word of a line by what all candidates have in common.
func extend(line, before, word string, candidates []string) (string, []string) {
	if len(candidates) == 0 {
		return line, nil
	}
	common := candidates[0]
	for _, c := range candidates[1:] {
		for !strings.HasPrefix(c, common) {
			_, size := utf8.DecodeLastRuneInString(common)
			common = common[:len(common)-size]
		}
	}
	if len(common) < len(word) {
		common = word
	}
	if len(candidates) == 1 && before == "" {
		common += " "
	}
	return before + common, candidates
}
