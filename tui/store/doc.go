// Package store is everything eg-top knows, as a value: no goroutine, no clock, no lock.
//
// A [Message] is one thing that a feed saw: a node's state or counters, an event of its journal, a page of a list, the
// end of a connection. [Store.Apply] takes them one by one; [Store.View] gives what they amount to. A [View] never
// changes, and shares with the one before all that has not changed: its tables are copied on write, and each table and
// each row has the version at which it changed last, so a page can keep what it drew. When nothing has changed the
// same View comes back.
//
// One second in the life of a node: the feed hands over its counters, [Store.Apply] puts them into the node's row and
// into the rows of the ranges it leads; four times a second the program asks for a View, and draws if it is another.
//
// The last 15 minutes are kept as messages between views taken every minute and a half, both packed: [Store.At] goes back
// to one of those, which has what is left today of the logs of then, and applies what came after it. Messages as JSON lines are also what eg-top records and replays.
package store
