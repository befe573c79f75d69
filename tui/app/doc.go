// Package app is eg-top as a program: the terminal, the keys and the loop around what the other packages of tui know
// and draw.
//
// [Run] decides what is wanted: one look as text or JSON, a few of them, or the screen. For the screen three loops
// work together. The feed's goroutines send messages through one bounded channel. The pump, one goroutine, owns the
// store: it applies the messages, and at the refresh rate hands over a view if something has changed. The model, in
// Bubble Tea's loop, owns everything that a person can change (which page, what is selected, filters, dialogs), and
// draws a page from the view and that, no more often than one of the two changes.
//
// Nothing of it may leave a terminal unusable. The terminal's settings are read before anything is changed and put
// back at the end, whatever the end is: a key, a signal, a hung-up line, or a panic in any goroutine that this package
// starts ([guard]); and so it is when a shell stops the program and continues it, in the foreground or behind ([jobs]).
package app
