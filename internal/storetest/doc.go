// Package storetest is a conformance suite for session managers with the
// interface of scs. It talks to them as an application and its browsers do:
// through the manager's methods and over HTTP, never through what a store
// keeps.
//
// The suite has two parts. The first checks what scs documents of every
// manager; scs's own on its memory store passes it, which shows that the part
// asks for nothing that scs does not promise. The second checks what players
// need beyond that, mostly that requests of one session at the same time do
// not undo each other, and that what has ended stays ended. Stock scs fails
// many of its cases, and a test of this package holds that it does: a case
// that it passed would prove nothing.
//
//	storetest.Run(t, func(t testing.TB) storetest.Subject { … })
//
// Each case gets a subject of its own, whose store holds nothing, and cases run
// at the same time. Slow requests stand in a gate: they have loaded their
// session and go on when the case opens it, so that no case depends on timing.
package storetest
