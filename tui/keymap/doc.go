// Package keymap is the one table of eg-top's keys: each has one meaning everywhere. What a key does, the footer and
// the help are all read from it, so they cannot differ.
package keymap
