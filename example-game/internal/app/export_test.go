package app

// NewRedisLog makes the log of the Redis client for its test.
var NewRedisLog = newRedisLog
