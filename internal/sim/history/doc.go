// Package history writes down what clients asked of topics and what they were told, and judges it: whether there is
// one order of all operations on a topic, in which each takes effect at one moment between its question and its
// answer, that explains every answer (linearizability, decided by porcupine).
//
// A topic is a register here: it exists or not, under an id, with a value (a label that each change sets to something
// nobody else writes). An operation whose outcome is unknown may take effect at any time after its question, once, or
// never; one that was told not to have been applied must not; reads that failed say nothing.
package history
