package lab

// Option changes how a server is run.
type Option func(*options)

type options struct {
	args []string
}

// WithArgs adds arguments to the server's command line, where they win over
// lab's own. They must not move the server's port or folders.
func WithArgs(args ...string) Option {
	return func(o *options) { o.args = append(o.args, args...) }
}

func collect(opts []Option) options {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	return o
}
