// Package faultproxy is a TCP proxy on a loopback port that breaks
// connections on demand, for tests of what a client does then.
//
// A [Mode] says what happens to all connections; [Proxy.SetMode] changes it at
// any time, and every mode may follow every other:
//
//	mode             new connection            bytes      end of one side
//	Pass             dials the upstream        forwarded  passed on
//	Refuse           refused, nobody listens   forwarded  passed on
//	AcceptThenClose  closed at once            forwarded  passed on
//	Silent           open, never answered      swallowed  passed on
//	Freeze           open, waits               wait       waits
//	Cut              refused, nobody listens   reset      -
//	Drop             open, never answered      swallowed  waits
//
// Bytes that wait are forwarded when the mode changes; bytes that are swallowed
// are gone, so their connection stays mute for good, and a connection that was
// accepted in Silent or Drop never gets another fate. Reads of the client go
// on in every mode, within the buffers of the kernel.
//
// A [When] chooses the moment of a fault instead: [Proxy.CutAfter] and
// [Proxy.SwitchAfter] watch what clients send for a sequence of bytes and act
// once, before those bytes go to the upstream, after they went, or when the
// upstream has answered them. In none of the three does the client see the
// answer, which is how a COMMIT of unknown outcome looks:
//
//	cut := proxy.CutAfter([]byte("COMMIT"), faultproxy.AfterForward)
//
// [Proxy.CutWithin] cuts one connection in the midst of a message, at a byte.
//
// [Proxy.ForsakeAfter] is CutAfter with an upstream that never hears of it.
//
// The proxy is authoritative for its own sockets only: what the kernels of the
// two sides have already taken is out of its hands, and a packet on which
// nothing answers cannot be had from user space, so that a dial in Drop
// succeeds and the silence begins after it.
//
// Each connection has two goroutines, one for each direction. All of them end
// before [Proxy.Close] returns.
package faultproxy
