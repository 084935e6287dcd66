// Package embedded is a small MySQL cluster and a Redis inside the process, so
// that the game runs with nothing else installed.
//
// # The cluster
//
// [Cluster] offers several nodes, each on a TCP port of its own, that serve
// the same rows, as the members of a multi-primary cluster do. Behind them is
// one engine of go-mysql-server, which keeps its rows in memory:
//
//	port of server_1 ─┐
//	port of server_2 ─┼─► fan-in listener ─► MySQL server ─► gate ─► engine
//	port of server_3 ─┘
//
// The engine alone loses updates: a transaction copies every table that it
// touches, and its commit puts all of them back. So statements pass one gate,
// first come, first served. A statement outside a transaction holds it while
// it runs; a transaction holds it from its first statement until it ends or
// its connection does. Who waits too long gets error 1205, and a transaction
// that stays idle too long loses its connection. Statements that touch no
// table do not need the gate, or a health probe would wait behind a
// transaction.
//
// # Breaking a node
//
//	      Stop               Start
//	 ┌──────────► stopped ─────────┐
//	up ◄───────────────────────────┘
//	 ▲ └────────► frozen ── Stop ──► stopped
//	 └── Thaw ────┘  Freeze
//
// A stopped node refuses connections and has closed the ones it had. A frozen
// node keeps its sockets open, takes new ones, and answers nothing; its
// transactions are rolled back, as the rest of a cluster does that evicts a
// dead member. A thawed node closes what was frozen and serves again. The other
// nodes go on meanwhile.
//
// Nothing survives Close. The rows are for play: a few thousand players and a
// table without secondary unique keys are what the engine carries well.
package embedded
