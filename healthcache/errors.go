package healthcache

import "errors"

// ErrUnknownShard is returned for a shard that is not watched.
var ErrUnknownShard = errors.New("healthcache: unknown shard")

// ErrUnknownNode is returned for a node that is not in [Config.Nodes].
var ErrUnknownNode = errors.New("healthcache: unknown node")

// ErrWriterSettling is returned when a writer's record was moved a moment ago,
// and has to stay for some intervals.
var ErrWriterSettling = errors.New("healthcache: the writer was moved a moment ago")

// ErrClosed is returned for a change of the shards after Close.
var ErrClosed = errors.New("healthcache: closed")

// errNothingRead is what a reading ends with when Redis answered, but not what
// was asked.
var errNothingRead = errors.New("healthcache: redis gave no keys")

// errForeign is what the decoder says of a value that is not a health key's.
var errForeign = errors.New("not a health record")

// errNoScript is what a beat ends with when Redis does not know its scripts by
// their hash.
var errNoScript = errors.New("healthcache: redis does not know the script")
