// Package feed brings messages to a store: from a live cluster, or from a recording.
//
// A [Feed] delivers through one bounded channel. [Live] watches all brokers through the public SDK, which fans in what
// they push; what they do not push it asks for, as far as the screen shows it ([Viewport]): nothing is ever listed whole
// to show forty rows of it. [Replay] reads a recording, which is messages as JSON lines; [Recorder] writes one.
//
// A broker's end is nothing special: its stream is tried again, and the others go on. When none answers, messages say so
// with the last error and the time of the next try, without end.
package feed
