// Package styles is how eg-top looks: which colour a role has on this terminal, and which glyphs there are.
//
// A Style is a small integer, a role and attributes, that fits into a cell. A Theme is built once for a colour
// mode and a glyph set; it holds the SGR sequence of every Style as a finished string, so drawing a cell never
// builds one. Text stays in the terminal's default colours and background; the six semantic roles come from the
// 16-colour palette, so that users' own themes apply, and only the heat ramp uses 256 or true colours.
//
// Colour is never the only carrier of meaning: each state has a glyph of its own (Glyphs), and where colours are
// off bold, underline and reverse stay.
package styles
