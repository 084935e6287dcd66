package healthcache

import "errors"

// ErrUnknownShard is returned for a shard that is not in [Config.Shards].
var ErrUnknownShard = errors.New("healthcache: unknown shard")

// errNoAnswer is the cause of a probe's context when its time is over.
var errNoAnswer = errors.New("no answer in time")

// errForeign is what the decoder says of a value that is not a health key's.
var errForeign = errors.New("not a health record")
