package shardrouter

// Thread is the number that the server has given the lease's connection.
func (l *Lease) Thread() uint64 { return l.server.peer.thread }
