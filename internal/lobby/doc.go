// Package lobby is where connections stay until they have said who they are. Anybody can open a connection and say
// nothing, as often as a machine has ports; whoever is known is to be let in all the same.
//
// A [Room] has so many seats. A listener's accept loop gives each connection one ([Room.Enter]), and whoever reads its
// first words gives it back ([Guest.Leave]). The loop never waits for those words: when all seats are taken, one of those
// who have been silent for a moment is shown out, which closes its connection. That is the oldest of the address that has
// the most seats, and nobody from an address where a member lives while there are others. So one address that floods a
// port takes its own seats away, many that do take each other's, and who speaks up, as every client does with its first
// packet, is gone from the room before it is anybody's turn.
//
// Whoever has sat down is let stay for a moment (grace) in any case: the first words may be here, and only their reader has
// not run yet. It is what bounds the pace of a flood: seats by grace, thousands of connections a second.
package lobby
