// Package term is everything between a value and a terminal: the three streams and what they can do, the
// escaping that keeps a record's bytes from driving the terminal, human formats for sizes and times, and the
// encoders that print one Go value as a table, JSON, YAML, CSV and the rest.
//
// The nouns:
//
//   - [IOStreams] holds stdin, stdout and stderr and decides once what each is: a terminal or not, how wide,
//     with or without colour. Tests get buffers from [Test].
//   - An [Output] is one command's choice of format and shape (-o, --columns, --sort-by, --limit, --jq …). It
//     prints a list ([Output.List]), a single object ([Output.Object]) or a stream ([Output.Stream]).
//   - A *row* is a plain struct. Its json tags are the machine contract; its col tags name the columns of the
//     table. A column without a json name cannot exist, so JSON is a superset of the widest table by
//     construction. [Schema] prints the JSON Schema of the same struct.
//   - A [File] is the client's configuration file: named contexts and defaults.
//
// One list travels like this: a command fills []topicRow and calls Output.List, which sorts and cuts the rows
// by their json names, then either marshals them (json, jsonl, yaml, --jq, --template) or reads the col tags
// and hands cells of text to the table or CSV writer. Whatever goes to a terminal has passed [Escape].
package term
