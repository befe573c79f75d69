// Package page is what eg-top shows: nine views of a cluster, and what lies over them.
//
// A [Page] turns a [store.View] and a [State] into cells on a canvas. It is a pure function of those two, of the
// canvas's size and of its theme: the same four give the same cells. It asks nothing of the cluster, keeps nothing
// between two frames but memos, and has no clock: the time is part of the [Frame] that comes with the state.
//
// One frame: the program puts the time, its own settings and what it has to say into State.Frame and calls [Draw]. The
// page splits the canvas into panels by its size, orders and filters its rows (the order is remembered until the
// rows' version changes), draws those that are visible, and writes into State.Shown where everything came to lie:
// for the mouse, for page up and down, and for the feed, which asks for details only of what is on screen.
//
// What is selected is held by id, never by place: a row keeps the selection wherever it moves.
//
// What a page says is true. Stale rows are dimmed and say since when; a sum to which nodes are missing begins with
// ≥; a list with nothing in it says what is missing, and why.
package page
