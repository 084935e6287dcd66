// Package scriptserver is a MySQL server for tests that answers what it is told
// to: any error number, rows, silence, the end of the connection, or bytes that
// no server should send.
//
//	server := scriptserver.New(t)
//	server.Answer("UPDATE", scriptserver.Err(1053, "Server shutdown in progress"))
//
// It knows the handshake, text and prepared statements, and nothing of SQL: a
// statement that no answer was set for is answered with OK, or, if shardrouter
// asks on a new connection who the server is, as a server that takes writes.
// Any account may log in. What real servers do is tested on real servers; here
// stands what they do not do on demand.
//
// Each connection has a goroutine; all of them have ended when the test has.
package scriptserver
