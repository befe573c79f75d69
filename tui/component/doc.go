// Package component draws what eg-top is made of onto a grid of cells: text, boxes, tables, sparklines, keyspace
// bars, timelines, dialogs.
//
// A Canvas is the grid. A frame is drawn by Reset, then by Text, Put, Fill and the components, and read with Lines,
// which turns each row of cells into one string of text and SGR sequences. The same cells always give the same
// bytes; a row whose cells did not change since the last frame gives the very string it gave then.
//
// Everything that comes from outside (names, keys, values, log lines, errors) goes through Text, which shows
// control bytes, bidirectional controls and whatever else would act on the terminal in an escaped form, and never
// draws a grapheme across the edge of its place. Graphemes about whose width terminals disagree are shown rune by
// rune, and runes that are written from right to left are spelled, for some terminals would order the line anew: so
// columns stay aligned on all of them. There is no other way onto the canvas for a string.
//
// The components are values: fill in the fields, call Draw. They draw only inside the Rect they get; one that is
// too small for them is drawn as far as it goes, and nothing panics at any size. The table is virtual: it asks only
// for the rows that can be seen, and keeps the cells of a row until the row's version changes.
package component
