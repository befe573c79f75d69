// Package cli is eg-cli: one tree of commands and its three front ends.
//
// The nouns:
//
//   - [Session] outlives a line. It holds what a front end brings ([Deps]), one client for each set of seeds, and
//     what the prompt has changed (:set, :use).
//   - A *line* is one command. [NewRoot] builds a tree for each, because flags of a cobra tree keep their values.
//   - An app is the world of one line: the session, the streams, the global flags, the settings that follow from
//     them (settings.go has the one table of where each value comes from).
//   - A *command* is one file: an options struct, a constructor that parses and validates, and a run function that
//     does the work through the smallest interface that will do. Tests call either half.
//
// [Main] chooses the front end (main.go): a command and its exit code; the prompt, when stdin is a terminal
// (repl.go); a batch from -e, run FILE or a pipe (run.go). All three end in Session.execute (root.go), which runs one
// line and reports its error; errors become exit codes in one place (exit.go).
//
// "topic create" from keyboard to exit: repl.loop reads a line, script.Parse cuts it into words, Session.runLine
// handles redirect and repeat, execute builds the tree; cobra finds the command, app.prepare resolves the settings;
// createTopicOptions.parse checks the arguments; runCreateTopic asks the cluster and gives a createdTopic to
// app.output, which prints a sentence, or JSON from the same struct.
package cli
