package lab

// Option changes how a server is run.
type Option func(*options)

type options struct {
	args        []string
	certificate *certificate // nil: no TLS
}

// WithArgs adds arguments to the server's command line, where they win over
// lab's own. They must not move the server's port or folders.
func WithArgs(args ...string) Option {
	return func(o *options) { o.args = append(o.args, args...) }
}

// WithCertificateOf makes the servers of a cluster or a sentinel set take TLS as
// well, with the certificate of peer, and speak it among themselves.
func WithCertificateOf(peer *TLSRedis) Option {
	return func(o *options) { o.certificate = peer.certificate }
}

func collect(opts []Option) options {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	return o
}
